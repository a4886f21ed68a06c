"""Requests as they come: by id, twice, of oneself, of strangers; each cause with its fix."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.campus import csv_file, reader_of
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts import student_finder
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_survey, rule_value_counts
from webapp.common.errors import Refusal
from webapp.housing.errors import HousingError
from webapp.housing.forms import default_rules
from webapp.housing.models import BuildingList, Preference, RoommateRequest
from webapp.housing.request_graph import split_group
from webapp.housing.rules import needs_of_student
from webapp.housing.selectors.requests import (
    graph_of,
    splits_of,
    unknown_names,
    unsure_requests,
)
from webapp.housing.services.requests import (
    needs_import,
    preferences_import,
    request_settle,
    requests_cut,
    requests_import,
    requests_match_close,
)
from webapp.tabular.reading import TableRefusal

ClientOf = Callable[[User], Client]


def confirm(client: Client, preview: str) -> Page:
    """Import what a preview shows and return the page that comes back."""
    return Page(client.post(f"{preview}confirm/", {"version": 1}, follow=True))


def send(user: User, cohort: Cohort, *lines: str):
    text = "student,wants\n" + "\n".join(lines) + "\n"
    return requests_import(user=user, cohort=cohort, **reader_of(text))


def test_requests_are_told_apart(bob: User, first_years: Cohort) -> None:
    found = send(
        bob,
        first_years,
        "N000,N001",
        "N001,N000",
        "N002,S-1001",  # the id on screen of N000
        "N003,N003",
        "N004,Anna K",
        "N000,N001",
        "nobody,N001",
    )
    assert (found.kept, found.unknown, found.themselves, found.twice, found.strangers) == (
        4, 1, 1, 1, 1,
    )  # fmt: skip
    graph = graph_of(first_years)
    assert graph.mutual == [(1001, 1002)]
    assert graph.one_sided == [(1003, 1001)]
    assert [request.written for request in graph.unknown] == ["Anna K"]
    assert "1 student asked for themselves" in found.sentence


def test_a_file_of_known_requests_says_so(
    bob: User, first_years: Cohort, client_of: ClientOf
) -> None:
    send(bob, first_years, "N000,N001")
    address = f"/cohorts/{first_years.pk}/requests/import/requests/"
    preview = client_of(bob).post(address, {"file": csv_file("student,wants\nN000,N001\n")}).url
    page = confirm(client_of(bob), preview)
    refusal = "The cohort has every request of this file already. Nothing was imported."
    assert page.has("alert", refusal)


def test_people_are_named_by_e_mail_name_and_code(
    bob: User, first_years: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = ("Anna Ash", "Ben Birch", "Ben Birch", "Dora Dogwood")
    for k, (student, name) in enumerate(zip(first_years.students.all(), named, strict=False)):
        student.name, student.email = name, f"p{k}@uni.example"
        student.save(update_fields=["name", "email"])
    monkeypatch.setattr(student_finder, "_codes", [lambda cohort: {"QX7": "N003"}])
    found = send(
        bob,
        first_years,
        "P0@uni.example,qx7",
        '"Ash, Anna","Birch, Ben"',  # two people of this name: nobody for sure
        '"Ash, Anna",p1@uni.example',
        "N005,Dora Dogwod",
    )
    assert (found.kept, found.unknown, found.strangers) == (4, 2, 0)
    graph = graph_of(first_years)
    assert graph.one_sided == [(1001, 1002), (1001, 1004)]
    finder = student_finder.StudentFinder(first_years)
    assert [s.number for s in finder.close("Ben Birch").students] == [1002, 1003]
    assert requests_match_close(user=bob, cohort=first_years) == 1
    assert (1006, 1004) in graph_of(first_years).one_sided


def test_who_asked_for_themselves_and_circles_are_listed_with_their_fix(
    bob: User, first_years: Cohort, client_of: ClientOf
) -> None:
    send(bob, first_years, "N000,N001", "N001,N002", "N002,N000", "N005,N005", "N006,N006")
    address = f"/cohorts/{first_years.pk}/requests/"
    client = client_of(bob)
    page = Page(client.get(address))
    assert page.has("paragraph", "Each asked for the next, and nobody was asked back.")
    listing = [part for part in page.every("region") if part.says("S-1006")]
    assert [part.name for part in listing] == ["Asked for themselves 2"]
    assert listing[0].has("button", "Leave all of them out")
    graph = graph_of(first_years)
    assert graph.circles == [[(1001, 1002), (1002, 1003), (1003, 1001)]]
    client.post(f"{address}circles/", {"members": "1001-1002-1003"})
    graph = graph_of(first_years)
    assert (graph.circles, graph.groups) == ([], [[1001, 1002, 1003]])
    first = graph.themselves[0]
    client.post(f"{address}{first.pk}/settle/", {"answer": "S-1009"})
    assert (1006, 1009) in graph_of(first_years).one_sided
    client.post(f"{address}themselves/")
    graph = graph_of(first_years)
    assert (graph.themselves, graph.n_ignored) == ([], 1)


def test_needs_come_by_a_file_or_with_the_survey(bob: User, first_years: Cohort) -> None:
    header = "Student id,Sleep,Accessible room needed,Needs\n"
    text = f"{header}N000,late,yes,quiet\nN001,early,no,\nx,,yes,\n"
    assert needs_import(user=bob, cohort=first_years, **reader_of(text)) == (1, 1)
    first_years.refresh_from_db()
    assert "Needs" in first_years.constraints
    needy = first_years.students.get(number=1001)
    assert needs_of_student(needy, ("Needs",)) == ("Accessible room needed", "quiet")
    assert first_years.students.get(number=1002).attributes["Needs"] == ""
    assert default_rules(first_years).needs == ("Needs",)
    with pytest.raises(HousingError, match="No row names a student"):
        needs_import(user=bob, cohort=first_years, **reader_of("id,needs\nN000,no\n"))


def test_a_second_file_of_needs_counts_at_once(bob: User, first_years: Cohort) -> None:
    """Processes kept the first one's needs, and placed students by them."""
    for name, who in (("N000", 0), ("N003", 3)):
        text = f"id,needs\n{name},quiet\n"
        needs_import(user=bob, cohort=first_years, **reader_of(text))
        first_years.refresh_from_db()
        needs = cohort_survey(first_years).attributes["Needs"]
        assert [k for k, words in enumerate(needs) if words] == [who]
        counts = rule_value_counts(first_years)["Needs"]
        assert (counts["quiet"], counts[""]) == (1, first_years.n_students - 1)


def test_choices_are_found_by_their_columns_in_a_survey(bob: User, first_years: Cohort) -> None:
    text = "id,Bedtime,First choice,Second choice\nN000,late,Elm,Alder\n"
    assert preferences_import(user=bob, cohort=first_years, **reader_of(text)) == (2, 0)
    assert set(Preference.objects.values_list("wanted", flat=True)) == {"Elm", "Alder"}


def test_several_in_one_cell_and_in_several_columns(bob: User, first_years: Cohort) -> None:
    text = "id,roommate 1,roommate 2\nN000,N001; N002,N003\n"
    found = requests_import(user=bob, cohort=first_years, **reader_of(text))
    assert found.kept == 3


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("id,ROOMMATE_LAST,ROOMMATE_FIRST", "N000,Birch,Ben"),
        ("id,Requested roommate: first name,Requested roommate: last name", "N000,Ben,Birch"),
        ("id,Roommate's Given Name,Roommate's Surname", "N000,Ben,Birch"),
        (
            "id,Sleep,Tidy,Guests,Music,Roommate 1 First Name,Roommate 1 Last Name,"
            "Roommate 2 First Name,Roommate 2 Last Name",
            "N000,early,yes,no,yes,Ben,Birch,N/A,",
        ),
    ],
)
def test_two_columns_are_the_parts_of_one_name(
    bob: User, first_years: Cohort, header: str, row: str
) -> None:
    """Each was a request for a student whom nobody knows."""
    first_years.students.filter(number=1002).update(name="Ben Birch")
    found = requests_import(user=bob, cohort=first_years, **reader_of(f"{header}\n{row}\n"))
    assert (found.kept, found.unknown) == (1, 0)
    assert graph_of(first_years).one_sided == [(1001, 1002)]


def test_a_part_of_a_name_alone_is_chosen_by_staff(bob: User, first_years: Cohort) -> None:
    first_years.students.filter(number=1002).update(name="Ben Birch")
    text = "id,roommate first name,roommate last name\nN000,Ben,Birch\nN002,,Birch\nN003,none,N/A\n"
    found = requests_import(user=bob, cohort=first_years, **reader_of(text))
    assert (found.kept, found.unknown) == (2, 1)
    assert [request.written for request in graph_of(first_years).unknown] == ["Birch"]


@pytest.mark.parametrize("text", ["student\nN000\n", "a,b\nx,y\n"])
def test_a_file_that_names_nobody_is_refused(bob: User, first_years: Cohort, text: str) -> None:
    with pytest.raises((HousingError, TableRefusal)):
        requests_import(user=bob, cohort=first_years, **reader_of(text))
    assert not RoommateRequest.objects.exists()


def test_a_close_id_is_matched_and_what_was_typed_is_forgotten(
    bob: User, first_years: Cohort
) -> None:
    send(bob, first_years, "N000,n-012", "N001,N01")
    assert requests_match_close(user=bob, cohort=first_years) == 1
    sure, several = RoommateRequest.objects.order_by("pk")
    assert (sure.target.original_id, sure.written) == ("N012", "")
    assert (several.target, several.written) == (None, "N01")


def test_an_unknown_one_is_settled_or_left_out(bob: User, first_years: Cohort) -> None:
    send(bob, first_years, "N000,Anna K", "N001,my cousin")
    first, second = RoommateRequest.objects.order_by("pk")
    options = {"user": bob, "cohort": first_years}
    with pytest.raises(HousingError, match="is no student"):
        request_settle(request_id=first.pk, answer="S-9999", **options)
    with pytest.raises(HousingError, match="cannot ask for themselves"):
        request_settle(request_id=first.pk, answer="S-1001", **options)
    request_settle(request_id=first.pk, answer="S-1002", **options)
    request_settle(request_id=second.pk, answer="", **options)
    graph = graph_of(first_years)
    assert graph.one_sided == [(1001, 1002)]
    assert not graph.unknown
    assert graph.n_ignored == 1


def test_a_group_too_large_is_split_and_its_cut_requests_left_out(
    bob: User, first_years: Cohort, campus: BuildingList
) -> None:
    ring = [f"N{k:03d},N{(k + s) % 5:03d}" for k in range(5) for s in (1, 4)]
    send(bob, first_years, *ring)
    (split,) = splits_of(first_years)
    assert sorted(map(len, split.parts)) == [2, 3]
    assert len(split.cut) == 2
    requests_cut(user=bob, cohort=first_years, pairs=split.cut)
    assert not splits_of(first_years)
    assert len(graph_of(first_years).mutual) == 3


def test_a_split_fits_and_keeps_everybody() -> None:
    clique = [(a, b) for a in range(11) for b in range(a + 1, 11)]
    parts = split_group(range(11), clique, 4)
    assert sorted(x for part in parts for x in part) == list(range(11))
    assert max(map(len, parts)) == 4
    assert len(parts) == 3


def test_preferences_are_replaced_whole(bob: User, first_years: Cohort) -> None:
    text = "id,first,second\nN000,Elm,Alder\nN001,Single,\nnobody,Elm,\n"
    assert preferences_import(user=bob, cohort=first_years, **reader_of(text)) == (3, 1)
    twice = "id,first\nN000,Elm\nN000,Alder\n"
    with pytest.raises(Refusal, match="appears twice"):
        preferences_import(user=bob, cohort=first_years, **reader_of(twice))
    assert Preference.objects.count() == 3


def test_the_page_shows_what_needs_a_decision(
    bob: User, first_years: Cohort, client_of: ClientOf
) -> None:
    client = client_of(bob)
    address = f"/cohorts/{first_years.pk}/requests/"
    assert Page(client.get(address)).has("paragraph", "No requests. Import a list")
    sent = {"file": csv_file("student,wants\nN000,Anna K\nN001,N002\n")}
    answer = client.post(f"{address}import/requests/", sent)
    assert Page(client.get(answer.url)).has("button", "Import 2 requests")
    page = confirm(client, answer.url)
    assert page.has("status", "1 name is unknown")
    assert page.one("row", "S-1001").has("cell", "“Anna K”", exactly=True)


def test_who_asked_whom_is_for_staff_only(
    alice: User, mallory: User, first_years: Cohort, client_of: ClientOf
) -> None:
    address = f"/cohorts/{first_years.pk}/requests/"
    assert client_of(alice).get(address).status_code == 403
    assert client_of(mallory).get(address).status_code == 404
    assert client_of(mallory).post(f"{address}clear/").status_code == 404


def named(cohort: Cohort, **people: str) -> None:
    """Give students a name and an e-mail, as a survey or a file of addresses does."""
    for original_id, name in people.items():
        mail = f"{original_id.lower()}@uni.example"
        cohort.students.filter(original_id=original_id).update(name=name, email=mail)


def test_people_are_asked_for_by_mail_and_by_name(bob: User, first_years: Cohort) -> None:
    named(first_years, N001="Zoë Ash", N002="Ben Birch")
    text = 'student,wants\nN000,"Ash, Zoe"\nN003@uni.example,N000\nN004,N002@UNI.example\n'
    found = requests_import(user=bob, cohort=first_years, **reader_of(text))
    assert (found.kept, found.unknown, found.strangers) == (2, 0, 1)
    assert graph_of(first_years).one_sided == [(1001, 1002), (1005, 1003)]


def test_two_of_one_name_are_asked_about_and_never_guessed(
    bob: User, first_years: Cohort, client_of: ClientOf
) -> None:
    named(first_years, N001="Anna Kent", N002="Anna Kent", N003="Cleo Cedar")
    send(bob, first_years, "N000,Anna Kent", "N004,Cleo Ceder", "N005,Xavier", "N006,Yolanda")
    page = Page(client_of(bob).get(reverse("housing:requests", args=[first_years.pk])))
    assert page.one("row", "“Anna Kent”").has(
        "cell", "Anna Kent S-1002 or Anna Kent S-1003 both have it in another spelling"
    )
    assert page.has("paragraph", "1 matches one student, 1 matches several, 2 match nobody")
    assert requests_match_close(user=bob, cohort=first_years) == 1
    assert graph_of(first_years).one_sided == [(1005, 1004)]
    sent = {"back": reverse("housing:requests", args=[first_years.pk]) + "?show=unknown"}
    change = reverse("housing:requests-leave-out", args=[first_years.pk])
    page = Page(client_of(bob).post(change, sent, follow=True))
    assert page.has("status", "2 requests left out.")
    page = Page(client_of(bob).post(change, sent, follow=True))
    assert page.has("alert", "Every unknown request is close to somebody")
    assert [request.written for request in graph_of(first_years).unknown] == ["Anna Kent"]


def test_a_file_in_which_everybody_asks_for_themselves(bob: User, first_years: Cohort) -> None:
    with pytest.raises(Refusal, match="students request themselves"):
        send(bob, first_years, "N000,N000", "N001,N001")


def test_a_near_name_says_why_it_is_offered(
    bob: User, first_years: Cohort, client_of: ClientOf
) -> None:
    named(first_years, N001="Anna Kent", N002="Anna Kent", N003="Cleo Cedar")
    send(bob, first_years, "N000,Anna Kent", "N004,Cleo Ceder", "N005,n-012", "N006,camp")
    why = {one.request.written: one.near.why for one in unknown_names(first_years)}
    assert why == {
        "Anna Kent": "both have it in another spelling",
        "Cleo Ceder": "one letter differs",
        "n-012": "only the spelling differs",
        "camp": "",
    }
    assert len(unsure_requests(first_years)) == 2
    page = Page(client_of(bob).get(f"/cohorts/{first_years.pk}/requests/"))
    assert page.one("row", "“Cleo Ceder”").has("cell", "one letter differs")


def test_an_id_two_letters_apart_is_asked_about(bob: User, first_years: Cohort) -> None:
    """Two letters of a long id used to count as sure."""
    first_years.students.filter(original_id="N001").update(original_id="ABCDEFGHIJKL")
    send(bob, first_years, "N000,ABCDEFGHIJXY", "N002,ABCDEFGHIJKX")
    assert [one.near.is_sure for one in unknown_names(first_years)] == [True, False]


def test_chosen_requests_are_left_out_and_counted_again(
    bob: User, first_years: Cohort, client_of: ClientOf
) -> None:
    send(bob, first_years, "N000,N001", "N001,N000", "N002,N003", "N004,nobody such")
    client, address = client_of(bob), f"/cohorts/{first_years.pk}/requests/"
    page = Page(client.get(f"{address}?show=one-sided"))
    assert page.field("Choose S-1003 asked for S-1004").value == "1003-1004"
    for unreadable in ("7", "x-y", "1-2-3"):
        wrong = {"pair": ["1003-1004", unreadable]}
        page = Page(client.post(f"{address}cut/", wrong, follow=True))
        assert page.has("alert", "The page was out of date.")
    assert graph_of(first_years).n_ignored == 0
    sent = {"pair": ["1003-1004", "1001-1002"]}
    page = Page(client.post(f"{address}cut/", sent, follow=True))
    assert page.has("status", "3 requests left out.")
    assert (graph_of(first_years).mutual, graph_of(first_years).one_sided) == ([], [])
    for act, wrong in (("cut", {}), ("cut", {"pair": "1003-1004"}), ("keep", {})):
        client.post(f"{address}{act}/", wrong)
    assert graph_of(first_years).n_ignored == 3
    key = RoommateRequest.objects.get(student__number=1003).pk
    client.post(f"{address}keep/", {"request": key})
    assert graph_of(first_years).one_sided == [(1003, 1004)]
    client.post(f"{address}keep/", {"all": "1"})
    assert graph_of(first_years).mutual == [(1001, 1002)]
    page = Page(client.post(f"{address}keep/", {"all": "1"}, follow=True))
    assert page.has("alert", "None of these requests is left out")


def test_people_to_keep_apart_are_no_requests(bob: User, first_years: Cohort) -> None:
    """They were read as the wish to live together."""
    with pytest.raises(Refusal, match="No column names the requested roommates"):
        requests_import(
            user=bob,
            cohort=first_years,
            **reader_of("student,do_not_place_with\nN000,N001\nN001,N000\n"),
        )
    assert not RoommateRequest.objects.exists()
    found = requests_import(
        user=bob,
        cohort=first_years,
        **reader_of("student,wants,Not with\nN000,N001,N002\nN001,N000,N003\n"),
    )
    assert found.kept == 2
    assert graph_of(first_years).mutual == [(1001, 1002)]


def test_a_request_in_words_that_may_refuse_somebody_is_read_by_staff(
    bob: User, first_years: Cohort
) -> None:
    """They were requests for the student whom they refuse."""
    first_years.students.filter(number=1002).update(name="Ben Birch")
    found = send(
        bob, first_years, "N000,Please not with Ben Birch", "N002,anyone but N001", "N003,N001"
    )
    assert (found.kept, found.unknown) == (3, 2)
    graph = graph_of(first_years)
    assert graph.one_sided == [(1004, 1002)]
    written = {request.written for request in graph.unknown}
    assert written == {"Please not with Ben Birch", "anyone but N001"}


def test_the_page_names_a_column_of_people_to_keep_apart(
    bob: User, first_years: Cohort, client_of: ClientOf
) -> None:
    address = f"/cohorts/{first_years.pk}/requests/import/requests/"
    file = csv_file("student,wants,Not with\nN000,N001,N002\nN001,N000,N003\n", "r.csv")
    page = Page(client_of(bob).post(address, {"file": file}, follow=True))
    said = "“Not with” names people to keep apart. Set this in the rules of a placement."
    assert page.has("listitem", said)
