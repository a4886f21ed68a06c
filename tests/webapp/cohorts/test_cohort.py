"""One cohort: who sees it, splitting, practice pairs, renaming, purging."""

import re
from collections import Counter
from collections.abc import Callable

import pytest
from django.urls import reverse

from tests.webapp.factories.cohorts import survey_csv
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort, PairsOrigin, Student
from webapp.cohorts.selectors.surveys import cohort_pairs, cohort_survey
from webapp.cohorts.services.cohorts import (
    CohortError,
    cohort_purge,
    cohort_set_pairs,
    cohort_split,
)
from webapp.jobs.models import Job, JobState
from webapp.jobs.runner import run_job


def test_it_is_seen_inside_the_organisation_only(
    alice: User, bob: User, mallory: User, client_of: Callable, make_cohort: Callable
) -> None:
    cohort = make_cohort(bob)
    for tab in ("questions", "students", "pairs", "nonsense"):
        address = reverse("cohorts:cohort", args=[cohort.pk]) + f"?tab={tab}"
        assert client_of(alice).get(address).status_code == 200
        assert client_of(mallory).get(address).status_code == 404
    assert Page(client_of(alice).get("/cohorts/")).has("link", cohort.name)
    assert cohort.name not in Page(client_of(mallory).get("/cohorts/")).source


@pytest.mark.parametrize("action", ["rename", "split", "simulate", "purge"])
def test_rights_of_every_change(
    alice: User,
    bob: User,
    mallory: User,
    client_of: Callable,
    make_cohort: Callable,
    action: str,
) -> None:
    cohort = make_cohort(bob)
    address = reverse(f"cohorts:{action}", args=[cohort.pk])
    assert client_of(alice).post(address).status_code == 403
    assert client_of(mallory).post(address).status_code in (403, 404)
    assert client_of(alice).get(address).status_code == 403
    assert client_of(mallory).get(address).status_code in (403, 404)
    # A form of its own asks for the name; the page of the cohort asks before it is purged.
    assert client_of(bob).get(address).status_code == (403 if action == "purge" else 200)
    assert Cohort.objects.get() == cohort
    assert (Cohort.objects.get().name, cohort.students.count()) == (cohort.name, 24)


def test_the_survey_and_a_blank_reach_the_engine(bob: User, make_cohort: Callable) -> None:
    cohort = make_cohort(bob, data=survey_csv(Tidiness={3: ""}))
    survey = cohort_survey(cohort)
    assert survey.n_students == 24
    assert survey.answers[3, 2] == -1
    assert survey.attributes["Gender"][:2] == ("M", "F")


def test_the_same_seed_gives_the_same_halves(bob: User, make_cohort: Callable) -> None:
    cohort = make_cohort(bob)
    first, second = cohort_split(user=bob, cohort=cohort, seed=5)
    again, _ = cohort_split(user=bob, cohort=cohort, seed=5)
    ids = [set(half.students.values_list("original_id", flat=True)) for half in (first, second)]
    assert not ids[0] & ids[1]
    assert len(ids[0] | ids[1]) == 24
    assert set(again.students.values_list("original_id", flat=True)) == ids[0]


@pytest.mark.parametrize("seed", range(4))
def test_every_group_that_can_be_paired_still_can_in_each_half(
    bob: User, make_cohort: Callable, seed: int
) -> None:
    """Halves of 210 women and 190 men had 105 and 95: nobody could be proposed for."""
    women = dict.fromkeys(range(14), "F") | dict.fromkeys(range(14, 26), "M")
    cohort = make_cohort(bob, data=survey_csv(26, Gender=women))
    for half in cohort_split(user=bob, cohort=cohort, seed=seed):
        genders = Counter(student.attributes["Gender"] for student in half.students.all())
        assert set(genders) == {"F", "M"}
        assert not any(count % 2 for count in genders.values())


@pytest.mark.parametrize(("students", "first"), [(4, 2), (5, 2), (7, 2), (24, 12), (27, 12)])
def test_the_first_half_is_even_and_not_the_larger(
    bob: User, make_cohort: Callable, students: int, first: int
) -> None:
    alike = dict.fromkeys(range(students), "F")
    cohort = make_cohort(bob, data=survey_csv(students, Gender=alike))
    halves = cohort_split(user=bob, cohort=cohort, seed=1)
    assert [half.n_students for half in halves] == [first, students - first]


@pytest.mark.parametrize("seed", ["", "7"])
def test_a_split_tells_its_seed(
    bob: User, client_of: Callable, make_cohort: Callable, seed: str
) -> None:
    cohort = make_cohort(bob)
    address = reverse("cohorts:split", args=[cohort.pk])
    page = Page(client_of(bob).post(address, {"seed": seed}, follow=True))
    told = int(
        re.search(r"Split into 12 and 12 students \(seed (\d+)\)", page.one("status").text)[1]
    )
    assert seed in ("", str(told))
    assert AuditLine.objects.get(verb="split").details["seed"] == told
    first = cohort.halves.order_by("created_at")[0]
    again, _ = cohort_split(user=bob, cohort=cohort, seed=told)
    ids = [set(half.students.values_list("original_id", flat=True)) for half in (first, again)]
    assert ids[0] == ids[1]


def test_practice_pairs_keep_to_the_rule_and_are_labelled(
    bob: User, client_of: Callable, make_cohort: Callable
) -> None:
    cohort = make_cohort(bob, data=survey_csv(Gender={0: "", 1: ""}))
    client = client_of(bob)
    address = reverse("cohorts:simulate", args=[cohort.pk])
    client.post(address, {"same": ["Gender"], "seed": "3"})
    job = Job.objects.get(kind="roommates.simulate")
    run_job(job.pk, watched=False)
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED, job.error
    cohort.refresh_from_db()
    assert cohort.pairs_origin == PairsOrigin.SIMULATED
    genders = cohort_survey(cohort).attributes["Gender"]
    assert all(genders[i] == genders[j] for i, j in cohort_pairs(cohort))
    assert cohort.n_pairs == 11
    page = Page(client.get(reverse("cohorts:cohort", args=[cohort.pk])))
    assert page.says("These pairs were simulated")


def test_pairs_are_simulated_also_after_the_person_who_asked_is_gone(
    bob: User, make_cohort: Callable
) -> None:
    cohort = make_cohort(bob)
    cohort_set_pairs(
        user=None, cohort=cohort, pairs=[(0, 1)], origin=PairsOrigin.SIMULATED, note="drawn"
    )
    assert cohort.n_pairs == 1
    line = AuditLine.objects.get(verb="simulated pairs")
    assert (line.organisation, line.username) == (bob.organisation, "system")


def test_practice_never_replaces_real_pairs(
    bob: User, client_of: Callable, make_cohort: Callable
) -> None:
    cohort = make_cohort(bob)
    cohort_set_pairs(
        user=bob, cohort=cohort, pairs=[(0, 1)], origin=PairsOrigin.IMPORTED, note="past"
    )
    page = client_of(bob).post(reverse("cohorts:simulate", args=[cohort.pk]), follow=True)
    assert Page(page, status=422).has("alert", "has real pairs")
    assert not Job.objects.exists()


def test_purging_takes_the_typed_name(
    bob: User, carol: User, client_of: Callable, make_cohort: Callable
) -> None:
    cohort = make_cohort(bob)
    address = reverse("cohorts:purge", args=[cohort.pk])
    assert client_of(bob).post(address, {"name": cohort.name}).status_code == 403
    client = client_of(carol)
    page = Page(client.post(address, {"name": "x"}, follow=True), status=422)
    assert "does not match" in page.field("Type “First-years” to confirm").description
    assert Student.objects.count() == 24
    client.post(address, {"name": cohort.name})
    assert not Cohort.objects.exists()
    assert not Student.objects.exists()
    assert AuditLine.objects.filter(verb="purged", details__students=24).exists()


def test_search_finds_students_of_the_own_organisation(
    bob: User, mallory: User, client_of: Callable, make_cohort: Callable
) -> None:
    cohort = make_cohort(bob)
    response = client_of(bob).get("/search/?q=S-1003&stay=1")
    assert Page(response).has("listitem", f"Student of {cohort.name}")
    assert "Student of" not in Page(client_of(mallory).get("/search/?q=S-1003&stay=1")).source


def test_an_original_id_leads_staff_to_the_id_on_screen(
    alice: User, bob: User, mallory: User, client_of: Callable, make_cohort: Callable
) -> None:
    cohort = make_cohort(bob)
    address = reverse("cohorts:cohort", args=[cohort.pk]) + "?tab=students&q=N002"
    for person, address_of_person in ((alice, address), (mallory, "/search/?q=N002")):
        assert "S-1003" not in Page(client_of(person).get(address_of_person)).source
    assert "S-1003" not in Page(client_of(alice).get("/search/?q=N002")).source
    assert not AuditLine.objects.filter(verb="looked up ids").exists()
    for path in (address, "/search/?q=N002&stay=1"):
        page = Page(client_of(bob).get(path))
        assert page.has("link", "S-1003")
        assert "S-1004" not in page.source
    found = AuditLine.objects.get(verb="looked up ids")
    assert found.details == {"page": 1, "tab": "students", "found": ["S-1003"]}
    searched = AuditLine.objects.get(verb="searched for students")
    assert (searched.user, searched.details) == (bob, {"found": ["S-1003"], "count": 1})


def test_an_original_id_leads_to_its_past_pair(
    bob: User, client_of: Callable, make_cohort: Callable
) -> None:
    cohort = make_cohort(bob)
    cohort_set_pairs(
        user=bob, cohort=cohort, pairs=[(0, 1), (2, 3)], origin=PairsOrigin.IMPORTED, note="past"
    )
    address = reverse("cohorts:cohort", args=[cohort.pk])
    page = Page(client_of(bob).get(address + "?tab=pairs&q=N003"))
    assert page.one("row", "S-1003").says("S-1004")
    assert "S-1001" not in page.source


def test_what_looks_like_no_id_on_screen_finds_no_number(
    alice: User, client_of: Callable, bob: User, make_cohort: Callable
) -> None:
    address = reverse("cohorts:cohort", args=[make_cohort(bob).pk]) + "?tab=students&q="
    for query, is_found in (("S-1004", True), ("s 1004", True), ("1004", True), ("a1004b", False)):
        page = Page(client_of(alice).get(address + query))
        assert page.has("link", "S-1004", exactly=True) is is_found, query


def test_purging_takes_every_copy_of_the_answers(
    bob: User, carol: User, client_of: Callable, make_cohort: Callable
) -> None:
    cohort, other = make_cohort(bob), make_cohort(bob, "Second-years")
    first, second = cohort_split(user=bob, cohort=cohort, seed=5)
    deeper = cohort_split(user=bob, cohort=second, seed=6)
    client, address = client_of(carol), reverse("cohorts:cohort", args=[cohort.pk])
    dialog = Page(client.get(address)).one("dialog", "Purge this cohort")
    assert all(dialog.says(half.name) for half in (first, second, *deeper))
    client.post(reverse("cohorts:purge", args=[cohort.pk]), {"name": cohort.name})
    assert Cohort.objects.get() == other
    assert Student.objects.count() == 24
    assert AuditLine.objects.filter(verb="purged").count() == 5


def test_purging_a_half_says_where_the_answers_stay(
    bob: User, carol: User, client_of: Callable, make_cohort: Callable
) -> None:
    cohort = make_cohort(bob)
    half, _ = cohort_split(user=bob, cohort=cohort, seed=5)
    address = reverse("cohorts:cohort", args=[half.pk])
    dialog = Page(client_of(carol).get(address)).one("dialog", "Purge this cohort")
    assert dialog.says("The same answers stay in")
    cohort_purge(user=carol, cohort=half, typed_name=half.name)
    assert Cohort.objects.count() == 2


def test_a_cohort_that_is_gone_is_not_split(bob: User, make_cohort: Callable) -> None:
    cohort = make_cohort(bob)
    Cohort.objects.filter(pk=cohort.pk).delete()
    with pytest.raises(CohortError, match="was removed meanwhile"):
        cohort_split(user=bob, cohort=cohort, seed=5)
    assert not Cohort.objects.exists()


def test_students_of_a_half_keep_their_ids_on_screen(bob: User, make_cohort: Callable) -> None:
    """Where ids were made, the pairs file names students by the ids on screen."""
    lines = [line.split(b",", 1)[1] for line in survey_csv().splitlines()]
    cohort = make_cohort(bob, data=b"\n".join(lines))
    assert cohort.ids_made
    for half in cohort_split(user=bob, cohort=cohort, seed=5):
        assert all(student.label == student.original_id for student in half.students.all())
    whole = dict(cohort.students.values_list("number", "answers"))
    assert all(
        whole[number] == answers
        for number, answers in half.students.values_list("number", "answers")
    )
