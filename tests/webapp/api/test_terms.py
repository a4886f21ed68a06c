"""Terms, dates of beds, meanings of needs and rounds of room choice, for programs."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.webapp.factories.placed import placed_cohort, publish
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Student
from webapp.housing.models import NeedMeaning, Placement, Term
from webapp.housing.scores import Scores
from webapp.room_choice.models import ChoiceRound

AUTUMN = {"name": "Autumn", "code": "10", "starts_on": "2026-08-20", "ends_on": "2026-12-18"}


@pytest.fixture
def placement(bob, monkeypatch) -> Placement:
    """A cohort without answers, so without scores."""
    monkeypatch.setattr(Scores, "of_rooms", lambda self, rooms, stays=None: {})
    return placed_cohort(bob)


def test_terms_are_added_changed_chosen_and_removed(program_of, bob, placement) -> None:
    program = program_of(bob)
    made = program.post("/terms", AUTUMN)
    assert (made.status_code, made.data["placements"]) == (201, 0)
    at = f"/terms/{made.data['id']}"
    changed = program.call("PUT", at, AUTUMN | {"ends_on": "2026-12-20"})
    assert changed.data["ends_on"] == "2026-12-20"
    choose = f"/placements/{placement.pk}/term"
    assert program.post(choose, {"term": made.data["id"]}).status_code == 204
    assert program.get("/terms").data["items"][0]["placements"] == 1
    refused = program.delete(at)
    assert refused.status_code == 422
    assert "1 placement is for Autumn" in refused.data["detail"]
    assert program.post(choose, {"term": None}).status_code == 204
    assert program.delete(at).status_code == 204
    assert AuditLine.objects.filter(verb__contains="term").count() == 5


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"starts_on": "20 August"}, "starts_on: expected a day such as 2026-08-20."),
        ({"starts_on": 20260820}, "starts_on: expected a day such as 2026-08-20."),
        ({"starts_on": "20260820"}, "starts_on: expected a day from 1990-01-01 to 2100-12-31."),
        ({"ends_on": "2101-01-01"}, "ends_on: expected a day from 1990-01-01 to 2100-12-31."),
        ({"ends_on": "2026-08-20"}, "The last day has to be after the first day."),
        ({"name": " "}, "The term needs a name."),
    ],
)
def test_a_bad_term_gets_one_sentence(program_of, bob, change, sentence) -> None:
    answer = program_of(bob).post("/terms", AUTUMN | change)
    assert (answer.status_code, answer.data["detail"]) == (422, sentence)
    assert not Term.objects.exists()


def test_the_term_of_another_organisation_is_unknown(program_of, bob, mallory, placement) -> None:
    theirs = program_of(mallory).post("/terms", AUTUMN).data["id"]
    answer = program_of(bob).post(f"/placements/{placement.pk}/term", {"term": theirs})
    assert (answer.status_code, answer.data["detail"]) == (422, "term: there is no such term.")


def test_a_student_leaves_earlier_than_the_term(program_of, bob, placement) -> None:
    program, at = program_of(bob), f"/placements/{placement.pk}/dates"
    sent = {"student": "S-1001", "leaves_on": "2026-10-31", "version": placement.version}
    done = program.post(at, sent)
    assert done.data["sentence"] == "Dates of S-1001: until 31 Oct 2026."
    assert done.data["version"] == placement.version + 1
    assert program.post(at, sent).status_code == 409
    places = program.get(f"/placements/{placement.pk}/students").data["items"]
    days = {one["student"]: (one["arrives_on"], one["leaves_on"]) for one in places}
    assert days["S-1001"] == (None, "2026-10-31")
    assert days["S-1002"] == (None, None)


def test_needs_get_their_rooms(program_of, bob, placement) -> None:
    cohort = placement.cohort
    cohort.constraints = ["Needs"]
    cohort.needs = ["Needs"]
    cohort.save()
    Student.objects.filter(cohort=cohort, number__in=[1001, 1002]).update(
        attributes={"Needs": "No stairs"}
    )
    placement.buildings.rooms.filter(name="103").update(meets=["Ground floor"])
    program = program_of(bob)
    (need,) = program.get(f"/cohorts/{cohort.pk}/needs").data["needs"]
    assert (need["need"], need["students"], need["rooms"]) == ("No stairs", 2, 0)
    unknown = program.post("/needs", {"need": "No stairs", "offers": ["Lift"]})
    assert unknown.data["detail"] == "offers[0]: no room says “Lift”."
    said = program.post("/needs", {"need": "no stairs", "offers": ["ground FLOOR"]})
    assert (said.data["offers"], said.data["rooms"]) == (["Ground floor"], 1)
    (need,) = program.get(f"/cohorts/{cohort.pk}/needs").data["needs"]
    assert (need["rooms"], need["meaning"]) == (1, said.data["id"])
    assert program.delete(f"/needs/{said.data['id']}").status_code == 204
    assert not NeedMeaning.objects.exists()


def test_rounds_of_room_choice_are_read_with_their_counts(program_of, bob, placement) -> None:
    publish(placement)
    now = timezone.now()
    found = ChoiceRound.objects.create(
        placement=placement, name="First", opens_at=now - timedelta(hours=1), state="open",
        closes_at=now + timedelta(days=1), minutes=30, seed=1,
    )  # fmt: skip
    for turn, number in enumerate((1006, 1001), start=1):
        found.slots.create(
            student=placement.cohort.students.get(number=number), turn=turn,
            starts_at=now - timedelta(minutes=5), ends_at=now + timedelta(minutes=25),
        )  # fmt: skip
    program, at = program_of(bob), f"/placements/{placement.pk}/choice-rounds"
    (listed,) = program.get(at).data["rounds"]
    assert listed == program.get(f"{at}/{found.pk}").data
    assert (listed["state"], listed["students"], listed["chosen"]) == ("open", 2, 0)
    assert listed["counts"] == {"chosen": 0, "placed": 1, "now": 1, "waiting": 0, "missed": 0}
    assert program.get(f"{at}/{found.pk + 1}").status_code == 404


def test_viewers_read_neither_needs_nor_rounds(program_of, alice, placement) -> None:
    program = program_of(alice)
    for path in (
        "/terms",
        f"/cohorts/{placement.cohort_id}/needs",
        f"/placements/{placement.pk}/choice-rounds",
    ):
        assert program.get(path).status_code == 403, path
