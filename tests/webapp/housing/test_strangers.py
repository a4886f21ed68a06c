"""Files of housing offices: each is recognised by every door, or asks what staff alone can say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from engine.tabular.choices import Choices, Role
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Draft, Student
from webapp.cohorts.services.drafts import draft_create, draft_update
from webapp.cohorts.services.imports import draft_import
from webapp.cohorts.services.latecomers import latecomers_import
from webapp.cohorts.student_finder import StudentFinder
from webapp.common.errors import Refusal
from webapp.housing.models import BuildingDraft, Preference, RoommateRequest
from webapp.housing.services.buildings import building_draft_create, building_draft_file
from webapp.housing.services.requests import (
    needs_import,
    preferences_import,
    requests_import,
)
from webapp.letters.services.addresses import addresses_import

FILES = Path(__file__).with_name("strangers")
ClientOf = Callable[[User], Client]


def bytes_of(name: str) -> bytes:
    return (FILES / name).read_bytes()


def reader(data: bytes) -> dict[str, Any]:
    return {"size": len(data), "read": lambda: data}


def upload(name: str) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, bytes_of(name), content_type="text/csv")


@pytest.fixture
def asked(bob: User) -> Cohort:
    """The people who ask and are asked for in the file of requests, known by their e-mails."""
    askers = (4, 17, 27, 41, 42)
    targets = (1098, 480, 1235, 175, 334)
    questions = [{"name": "Tidy", "kind": "binary", "levels": ["No", "Yes"]}]
    cohort = Cohort.objects.create(
        organisation=bob.organisation,
        created_by=bob,
        name="First-years",
        questions=questions,
        n_students=10,
    )
    Student.objects.bulk_create(
        Student(
            cohort=cohort,
            number=1001 + k,
            original_id=f"student26{number:04d}@lakeside.edu",
            answers=[0],
        )
        for k, number in enumerate((*askers, *targets))
    )
    return cohort


@pytest.fixture
def namesakes(bob: User) -> Cohort:
    """A cohort with two people called Avaa Kim and one called Ava Kim, known by their names."""
    data = bytes_of("names_minimal.csv")
    draft = with_names(draft_create(user=bob, filename="names.csv", **reader(data)), 1)
    return draft_import(user=bob, draft=draft, name="Names", version=draft.version)


def with_names(draft: Draft, column: int) -> Draft:
    """Use a column of a draft as names, as staff choose to."""
    choices = Choices.from_json(draft.choices).with_role([column], Role.NAME)
    return draft_update(draft=draft, choices=choices.to_json(), version=draft.version)


def previewed(client: Client, address: str, file: SimpleUploadedFile, **sent: str) -> str:
    """Upload a file and return the address of its preview."""
    answer = client.post(address, {"file": file, **sent})
    assert answer.status_code == 302, answer.content.decode()[:2000]
    assert client.get(answer.url).status_code == 200
    return answer.url


def confirmed(client: Client, preview: str) -> Page:
    version = Draft.objects.get().version
    return Page(client.post(f"{preview}confirm/", {"version": version}, follow=True))


KINDS = {
    "requests": (["Recipient Email"], ["Name or e-mail of requested roommate"], "5 requests"),
    "preferences": (
        ["Recipient Email"],
        ["What kind of room do you prefer?", "Which hall do you prefer?"],
        "8 choices",
    ),
    "needs": (["Recipient Email"], ["Do you need an accessible room?"], "the needs of 0 students"),
}


@pytest.mark.parametrize("act", KINDS)
def test_the_survey_itself_is_a_file_of_requests_choices_and_needs(
    bob: User, asked: Cohort, client_of: ClientOf, act: str
) -> None:
    client, (who, said, words) = client_of(bob), KINDS[act]
    preview = previewed(
        client,
        f"/cohorts/{asked.pk}/requests/import/{act}/",
        upload("qualtrics_requests_small.csv"),
    )
    page = client.get(preview)
    used = {use: [] for _, _, use, _ in page.context["columns"]}
    for _, name, use, _ in page.context["columns"]:
        used[use].append(name)
    (own,) = set(used) - {"who", "ignore"}
    assert (used["who"], used[own]) == (who, said)
    assert Page(page).has("button", f"Import {words}")
    assert not page.context["file"].obstacles


@pytest.mark.parametrize(
    ("act", "read", "what"),
    [("preferences", preferences_import, "choices"), ("needs", needs_import, "needs")],
)
def test_a_file_of_requests_is_no_file_of_choices_or_needs(
    bob: User, asked: Cohort, client_of: ClientOf, act: str, read: Callable, what: str
) -> None:
    one, other = asked.students.values_list("original_id", flat=True)[:2]
    data = f"student,wants\n{one},{other}\n{other},{one}\n".encode()
    client, sentence = client_of(bob), f"“wants” contains students, not {what}"
    preview = previewed(
        client, f"/cohorts/{asked.pk}/requests/import/{act}/", SimpleUploadedFile("r.csv", data)
    )
    assert Page(client.get(preview)).one("complementary", "Problems").says(sentence)
    with pytest.raises(Refusal, match=sentence):
        read(user=bob, cohort=asked, filename="r.csv", **reader(data))
    assert not Preference.objects.exists()


def test_requests_of_a_survey_are_saved_once_staff_have_seen_them(
    bob: User, asked: Cohort, client_of: ClientOf
) -> None:
    client = client_of(bob)
    preview = previewed(
        client,
        f"/cohorts/{asked.pk}/requests/import/requests/",
        upload("qualtrics_requests_small.csv"),
    )
    assert not RoommateRequest.objects.exists(), "nothing is saved before staff say so"
    assert confirmed(client, preview).has("status", "5 requests imported")
    pairs = RoommateRequest.objects.values_list("student__number", "target__number")
    assert sorted(pairs) == [(1001 + k, 1006 + k) for k in range(5)]
    assert not Draft.objects.exists()


def test_two_people_of_one_name_who_ask_are_a_question(
    bob: User, namesakes: Cohort, client_of: ClientOf
) -> None:
    text = b'Student,Roommate\nAvaa Kim,Ben Lee\n"Kim, Ava",Cai Roy\nDee Foxx,Eli Poe\n'
    with pytest.raises(Refusal, match=r"Row 2: 2 students are called Avaa Kim\. Which one"):
        requests_import(user=bob, cohort=namesakes, filename="r.csv", **reader(text))
    client = client_of(bob)
    preview = previewed(
        client,
        f"/cohorts/{namesakes.pk}/requests/import/requests/",
        SimpleUploadedFile("r.csv", text),
    )
    page = client.get(preview)
    question, near = page.context["file"].unsure
    assert question.sentence == "2 students are called Avaa Kim. Which one?"
    assert [one.number for one in question.near.students] == [1001, 1002]
    assert near.sentence == "No student has this name; one letter differs."
    assert not Page(page).says("is not a student")
    refused = confirmed(client, preview)
    problems = refused.one("complementary", "Problems")
    assert problems.says("can mean several students"), "it is not imported so"
    client.post(preview, {"action": "same", "key": question.key, "position": 1, "version": 1})
    confirmed(client, preview)
    pairs = RoommateRequest.objects.values_list("student__number", "target__number")
    assert sorted(pairs) == [(1002, 1004), (1003, 1005)]


def test_rows_of_one_name_can_be_left_out_and_taken_back(
    bob: User, namesakes: Cohort, client_of: ClientOf
) -> None:
    client = client_of(bob)
    file = SimpleUploadedFile("r.csv", b"Student,Roommate\nAvaa Kim,Ben Lee\nCai Roy,Ben Lee\n")
    address = f"/cohorts/{namesakes.pk}/requests/import/requests/"
    preview = previewed(client, address, file)
    client.post(preview, {"action": "without", "version": 1})
    assert client.get(preview).context["file"].can_import
    client.post(preview, {"action": "undo", "version": 2})
    assert not client.get(preview).context["file"].can_import


def test_a_request_for_one_of_two_namesakes_is_settled_on_the_page_of_requests(
    bob: User, namesakes: Cohort
) -> None:
    text = b"Student,Roommate\nBen Lee,Avaa Kim\n"
    found = requests_import(user=bob, cohort=namesakes, filename="r.csv", **reader(text))
    assert (found.kept, found.unknown) == (1, 1)
    finder = StudentFinder(namesakes)
    assert [one.number for one in finder.close("Avaa Kim").students] == [1001, 1002]
    assert not finder.close("Avaa Kim").is_sure


def test_pairs_of_two_namesakes_are_a_question_on_the_page(
    bob: User, namesakes: Cohort, client_of: ClientOf
) -> None:
    client = client_of(bob)
    answer = client.post(
        f"/cohorts/{namesakes.pk}/pairs/", {"file": upload("names_minimal_pairs.csv")}
    )
    page = Page(client.get(answer.url))
    assert page.says("2 students are called Avaa Kim. Which one?")
    assert not page.says("is not a student of this cohort")
    assert not page.says("sure match")


@pytest.mark.parametrize(
    "text",
    [
        "student,wants\nstudent260004@lakeside.edu,student260017@lakeside.edu\n",
        "\ufeffstudent;wants\r\nSTUDENT260004@lakeside.edu;student260017@LAKESIDE.edu\r\n",
        "student260004@lakeside.edu,student260017@lakeside.edu\n",  # no header
        "First name,Last name,Roommate\nNoah J.,Kim,Meia O’Brien\n",
        "Who wants,Roommate\nS-1001,S-1002\n",
        'Name,Roommate\n"Kim, Noah J.","O\'BRIEN, Meia"\n',
    ],
)
def test_people_are_found_by_number_e_mail_and_name_in_every_shape(
    bob: User, asked: Cohort, text: str
) -> None:
    asked.students.filter(number=1001).update(name="Noah J. Kim")
    asked.students.filter(number=1002).update(name="Meia O'Brien")
    found = requests_import(user=bob, cohort=asked, filename="r.csv", **reader(text.encode()))
    assert (found.kept, found.unknown, found.strangers) == (1, 0, 0)
    pairs = RoommateRequest.objects.values_list("student__number", "target__number")
    assert list(pairs) == [(1001, 1002)]


def test_an_e_mail_list_whose_ids_are_the_e_mails_is_read(
    bob: User, client_of: ClientOf, asked: Cohort
) -> None:
    cohort = asked
    for k, student in enumerate(cohort.students.all()[:5]):
        student.original_id = f"student26{k:04d}@lakeside.edu"
        student.number += 100
        student.save()
    data = bytes_of("addresses_ids_are_emails.csv")
    found = addresses_import(user=bob, cohort=cohort, filename="a.csv", **reader(data))
    assert found == (5, 0)
    one = cohort.students.get(original_id="student260001@lakeside.edu")
    assert (one.email, one.name) == ("student260001@lakeside.edu", "Liam-Marie Garcíaes")


def test_a_survey_as_an_e_mail_list_takes_no_roommate_for_a_name(bob: User, asked: Cohort) -> None:
    data = bytes_of("qualtrics_requests_small.csv")
    addresses_import(user=bob, cohort=asked, filename="a.csv", **reader(data))
    one = asked.students.get(number=1002)
    assert (one.email, one.name) == ("student260017@lakeside.edu", "Meia O'Brien")


def test_rooms_with_a_gender_designation_are_recognised(bob: User) -> None:
    data = bytes_of("rooms_gender_designation.csv")
    draft = building_draft_create(user=bob, filename="rooms.csv", **reader(data))
    assert draft.roles == [
        "hall", "floor", "room", "ignore", "capacity", "designation", "need", "note",
    ]  # fmt: skip
    found = building_draft_file(draft)
    assert not found.problems
    assert {room.designation for room in found.rooms} == {"Woman"}
    assert [room.name for room in found.rooms if room.meets] == ["N109", "N118", "N127"]


@pytest.mark.parametrize(
    ("text", "meets"),
    [
        ("Room,Beds,Features\n1,2,Deaf/hard of hearing\n", ("Deaf/hard of hearing",)),
        ("Room,Beds,Features\n1,2,Quiet / Step-free\n", ("Quiet", "Step-free")),
        ("Room,Beds,Features\n1,2,\"Quiet, deaf/hard of hearing; AC\"\n",
         ("Quiet", "deaf/hard of hearing", "AC")),
        ("Room,Beds,Deaf/hard of hearing (visual alarm)\n1,2,Yes\n2,2,\n",
         ("Deaf/hard of hearing (visual alarm)",)),
        ("Room,Beds,Balcony\n1,2,x\n2,2,\n", ("Balcony",)),
    ],
)  # fmt: skip
def test_needs_that_rooms_meet_are_not_split(bob: User, text: str, meets: tuple[str, ...]) -> None:
    data = text.encode()
    draft = building_draft_create(user=bob, filename="rooms.csv", **reader(data))
    found = building_draft_file(draft)
    assert not found.problems
    assert found.rooms[0].meets == meets


@pytest.mark.parametrize(
    "title", ["Gender Designation", "Room gender", "Gender restriction", "Sex", "Designation"]
)
def test_who_may_live_in_a_room_is_told_by_many_titles(bob: User, title: str) -> None:
    data = f"Hall,Room,Beds,{title}\nElm,1,2,Woman\n".encode()
    draft = building_draft_create(user=bob, filename="rooms.csv", **reader(data))
    assert draft.roles[3] == "designation"


def test_a_few_beds_are_a_building_list_on_the_page(bob: User, client_of: ClientOf) -> None:
    client = client_of(bob)
    answer = client.post("/buildings/new/", {"file": upload("few_beds.csv")})
    draft = BuildingDraft.objects.get()
    assert (draft.roles, building_draft_file(draft).n_beds) == (["hall", "room", "capacity"], 2)
    assert Page(client.get(answer.url)).has("button", "Import 1 room")


def test_a_column_called_name_is_never_a_question(bob: User) -> None:
    draft = draft_create(user=bob, filename="t.csv", **reader(bytes_of("three.csv")))
    draft = with_names(draft, 1)
    cohort = draft_import(user=bob, draft=draft, name="Three", version=draft.version)
    assert [question["name"] for question in cohort.questions] == ["Bedtime", "Tidiness"]
    assert cohort.students.get(original_id="u1").name.startswith("😀 Zoë van der")


@pytest.fixture
def surveyed(bob: User) -> Cohort:
    """The cohort of this year's survey, whose late arrivals write in the same form."""
    text = bytes_of("late_qualtrics.csv").decode("utf-8-sig").splitlines()
    rows = bytes_of("qualtrics_requests_small.csv").decode("utf-8-sig").splitlines()
    data = "\n".join([rows[0], *rows[1:], *_more(rows[1:])]).encode()
    assert len(text) == 6
    draft = draft_create(user=bob, filename="survey.csv", **reader(data))
    return draft_import(user=bob, draft=draft, name="This year", version=draft.version)


def _more(rows: list[str]) -> list[str]:
    """Return the same people again under other e-mails, with answers of late arrivals as well."""
    found = []
    late = bytes_of("late_qualtrics.csv").decode("utf-8-sig").splitlines()[3:]
    for k in range(12):
        row = [*rows, *late][k % 8]
        found.append(row.replace("@lakeside", f"{k}@other").replace(";R_", f";R_{k}"))
    return found


def test_late_arrivals_are_read_as_the_survey_was(
    bob: User, surveyed: Cohort, client_of: ClientOf
) -> None:
    client = client_of(bob)
    preview = previewed(client, f"/cohorts/{surveyed.pk}/add/", upload("late_qualtrics.csv"))
    assert surveyed.students.count() == 17, "nobody is added before staff have seen the file"
    page = client.get(preview)
    uses = {name: use for _, name, use, _ in page.context["columns"]}
    assert (uses["RecipientEmail"], uses["StartDate"]) == ("id", "ignore")
    assert uses["Q1"] == "question Tidiness"
    assert not page.context["file"].obstacles, page.context["file"].obstacles
    assert confirmed(client, preview).has("status", "3 students added")
    one = surveyed.students.get(original_id="qlate0@lakeside.edu")
    assert (one.email, one.name) == ("qlate0@lakeside.edu", "Inés Kim")
    names = [question["name"] for question in surveyed.questions]
    levels = surveyed.questions[names.index("Tidiness")]["levels"]
    assert levels[one.answers[names.index("Tidiness")]] == "Disagree"
    answered = sum(code >= 0 for code in one.answers)
    assert answered == len(names), [n for n, c in zip(names, one.answers, strict=True) if c < 0]


def test_late_arrivals_by_the_api_are_read_alike(bob: User, surveyed: Cohort) -> None:
    data = bytes_of("late_qualtrics.csv")
    added = latecomers_import(user=bob, cohort=surveyed, **reader(data))
    assert added.numbers == (1018, 1019, 1020)
    ids = set(surveyed.students.values_list("original_id", flat=True))
    assert {f"qlate{k}@lakeside.edu" for k in range(3)} <= ids


def test_an_answer_that_the_cohort_lacks_is_named_and_can_count_as_a_blank(
    bob: User, asked: Cohort, client_of: ClientOf
) -> None:
    client = client_of(bob)
    file = SimpleUploadedFile("l.csv", b"id,Tidy\nx@y.edu,Perhaps\nz@y.edu,JA\n")
    preview = previewed(client, f"/cohorts/{asked.pk}/add/", file)
    (problem,) = client.get(preview).context["file"].obstacles
    assert problem.startswith("Row 2, Tidy: “Perhaps” is not an answer to this question")
    client.post(preview, {"action": "as_blank", "version": 1})
    assert confirmed(client, preview).has("status", "2 students added")
    assert [one.answers for one in asked.students.filter(number__gt=1010)] == [[-1], [1]]


def test_a_column_is_given_another_use_and_the_change_is_taken_back(
    bob: User, asked: Cohort, client_of: ClientOf
) -> None:
    client = client_of(bob)
    file = SimpleUploadedFile("l.csv", b"Number,id,Tidy\n7,x@y.edu,Yes\n")
    preview = previewed(client, f"/cohorts/{asked.pk}/add/", file)
    client.post(preview, {"action": "use", "column": "0", "use": "id", "version": 1})
    uses = [use for _, _, use, _ in client.get(preview).context["columns"]]
    assert uses == ["id", "ignore", "question Tidy"], "one column alone holds the ids"
    for column, use in (("9", "id"), ("0", "nonsense"), ("", "id")):
        client.post(preview, {"action": "use", "column": column, "use": use, "version": 2})
    client.post(preview, {"action": "undo", "version": 2})
    uses = [use for _, _, use, _ in client.get(preview).context["columns"]]
    assert uses == ["ignore", "id", "question Tidy"]


def test_choices_are_replaced_after_the_preview(
    bob: User, asked: Cohort, client_of: ClientOf
) -> None:
    client = client_of(bob)
    address = f"/cohorts/{asked.pk}/requests/import/preferences/"
    preview = previewed(client, address, upload("qualtrics_requests_small.csv"))
    assert confirmed(client, preview).has("status", "8 choices imported")
    said = Preference.objects.filter(student__number=1002).values_list("rank", "wanted")
    assert list(said) == [(1, "Quad"), (2, "North Hall")]
    assert not Preference.objects.filter(wanted="No preference").exists()


def test_a_preview_is_for_staff_of_its_organisation_only(
    alice: User, bob: User, mallory: User, asked: Cohort, client_of: ClientOf
) -> None:
    client = client_of(bob)
    file = SimpleUploadedFile("l.csv", b"id,Tidy\nx@y.edu,Yes\n")
    preview = previewed(client, f"/cohorts/{asked.pk}/add/", file)
    for user, status in ((alice, 403), (mallory, 404)):
        stranger = client_of(user)
        assert stranger.get(preview).status_code == status
        sent = {"action": "as_blank", "version": 1}
        assert stranger.post(preview, sent).status_code == status
        assert stranger.post(f"{preview}confirm/", {"version": 1}).status_code == status
    assert asked.students.count() == 10
    draft = Draft.objects.get()
    assert client.get(f"/cohorts/{asked.pk}/pairs/{draft.pk}/").status_code == 404
    links = Page(client.get(f"/cohorts/{asked.pk}/")).every("link")
    assert [link.address for link in links].count(preview) == 1


def test_a_preview_that_somebody_else_changed_is_not_imported(
    bob: User, asked: Cohort, client_of: ClientOf
) -> None:
    client = client_of(bob)
    file = SimpleUploadedFile("l.csv", b"id,Tidy\nx@y.edu,Yes\n")
    preview = previewed(client, f"/cohorts/{asked.pk}/add/", file)
    client.post(preview, {"action": "use", "column": "1", "use": "ignore", "version": 1})
    client.post(f"{preview}confirm/", {"version": 1})
    assert asked.students.count() == 10
    client.post(f"/cohorts/import/{Draft.objects.get().pk}/discard/")
    assert not Draft.objects.exists()


WISHES = {
    "Who would you like to live with?": ("Ben Lee", "nobody", "Dee Fox please!", "no preference"),
    "Requested roommate": ("s1@x.edu", "", "s3@x.edu", ""),
    "Roommate request (name or e-mail)": ("I would love to live with Ben Lee.", "", "Fox, Dee", ""),
    "Mit wem möchtest du wohnen? (Mitbewohner)": ("mit Ben Lee", "egal", "Dee Fox", "niemand"),
    "¿Con quién quieres vivir? (compañero)": ("Ben Lee", "nadie", "con Dee Fox", ""),
}


@pytest.mark.parametrize("title", WISHES)
def test_roommates_that_a_survey_names_are_kept_as_requests(
    bob: User, client_of: ClientOf, title: str
) -> None:
    """They were left out silently unless the survey was imported a second time."""
    names = ("Ann Ray", "Ben Lee", "Cai Roy", "Dee Fox")
    rows = [f's{k}@x.edu,{names[k]},{("Yes", "No")[k % 2]},"{WISHES[title][k]}"' for k in range(4)]
    data = "\n".join([f"Email,Full name,Tidy,{title}", *rows]).encode()
    client = client_of(bob)
    made = client.post("/cohorts/import/", {"file": SimpleUploadedFile("survey.csv", data)})
    page = Page(client.get(made.url))
    assert page.says("names roommates. Keep as requests?")
    assert page.one("checkbox", "Keep as requests").is_checked
    sent = {"name": "Class", "version": 1, "keep_requests": "1"}
    answer = client.post(f"{made.url}confirm/", sent)
    assert "/files/" in answer.url
    assert not RoommateRequest.objects.exists(), "staff check them first"
    assert confirmed(client, answer.url).has("status", "2 requests imported")
    pairs = RoommateRequest.objects.values_list("student__name", "target__name")
    assert sorted(pairs) == [("Ann Ray", "Ben Lee"), ("Cai Roy", "Dee Fox")]


@pytest.mark.parametrize(
    ("title", "answers"),
    [
        ("What do you look for in a roommate?", ("Somebody tidy", "A quiet person", "fun", "-")),
        ("Anything else?", ("I snore", "I have a cat", "", "Peanuts")),
        ("Requested roommate", ("", "no", "nobody", "")),
    ],
)
def test_other_free_text_is_not_offered_as_requests(
    bob: User, client_of: ClientOf, title: str, answers: tuple[str, ...]
) -> None:
    rows = [f's{k}@x.edu,{("Yes", "No")[k % 2]},"{answers[k]}"' for k in range(4)]
    data = "\n".join([f"Email,Tidy,{title}", *rows]).encode()
    client = client_of(bob)
    made = client.post("/cohorts/import/", {"file": SimpleUploadedFile("survey.csv", data)})
    assert "keep_requests" not in Page(client.get(made.url)).source
