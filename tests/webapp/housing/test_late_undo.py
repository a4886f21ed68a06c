"""Late arrivals can be removed again until something is decided about one of them."""

import threading
from collections.abc import Callable

import pytest
from django.core import mail
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from tests.webapp.factories.campus import RULES, csv_file, reader_of
from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort, LateArrivals, PastPair
from webapp.cohorts.services.cohorts import CohortError
from webapp.cohorts.services.latecomers import Latecomers, latecomers_add, latecomers_undo
from webapp.cohorts.services.student_files import student_file_create
from webapp.common.errors import Refusal
from webapp.housing.models import (
    BuildingList,
    Place,
    Placement,
    Preference,
    RoommateRequest,
)
from webapp.housing.selectors.history import history_context
from webapp.housing.selectors.outcomes import outcome
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.services.decisions import Move, decision_make, moving, withdrawing
from webapp.housing.services.drafts import draft_add
from webapp.housing.services.needs import need_add
from webapp.housing.services.placements import placement_compute
from webapp.housing.services.publication import placement_publish
from webapp.housing.services.undo import decision_undo
from webapp.housing.services.versions import computed_version, version_store
from webapp.housing.services.waiting import turn_change
from webapp.letters.models import Letter, LetterTemplate
from webapp.matching.models import ForbiddenPair, LearnedModel

ClientOf = Callable[[User], Client]


@pytest.fixture
def placement(
    bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel
) -> Placement:
    """Everybody in a double for their gender, without a computation."""
    made = Placement.objects.create(
        organisation=bob.organisation,
        name="P",
        cohort=first_years,
        buildings=campus,
        model=learned,
        rules=RULES.to_json(),
    )
    beds = {
        gender: [
            room.pk
            for room in campus.rooms.filter(designation=gender)
            for _ in range(room.capacity)
        ]
        for gender in "FM"
    }
    students = first_years.students.all()
    rooms = {one.pk: (beds[one.attributes["Gender"]] or [None]).pop() for one in students}
    with transaction.atomic():
        version = version_store(
            computed_version(
                placement=made,
                job=None,
                user=bob,
                rules=made.rules,
                rooms=rooms,
                doubts={},
                figures={},
                outcomes={"moved": 0},
            )
        )
    fresh = Placement.objects.get(pk=made.pk)
    version.outcome = {**outcome(PlacementRooms(fresh)), "moved": 0}
    version.save()
    return fresh


def add(bob: User, cohort: Cohort, *ids: str) -> Latecomers:
    rows = [{"id": one, "Gender": "F"} for one in ids]
    return latecomers_add(user=bob, cohort=cohort, rows=rows, source="late.csv")


def stored(cohort: Cohort) -> list[tuple[object, ...]]:
    """Return everybody's answers, and every place of the cohort's placements."""
    students = cohort.students.values_list("number", "original_id")
    columns = ("placement", "number", "room", "bed", "turn")
    return [*students, *Place.objects.filter(student__cohort=cohort).values_list(*columns)]


def lines(placement: Placement) -> list[tuple[str, str]]:
    """Return the acts of the history, latest first, each with the reason for no Undo."""
    fresh = Placement.objects.get(pk=placement.pk)
    return [(line.event.sentence, line.words) for line in history_context(fresh, {})["lines"]]


def options(user: User, placement: Placement) -> dict[str, object]:
    fresh = Placement.objects.get(pk=placement.pk)
    return {"user": user, "placement": fresh, "version": fresh.version}


def test_the_history_removes_an_import_and_the_file_can_be_imported_again(
    bob: User, placement: Placement, client_of: ClientOf
) -> None:
    client, cohort = client_of(bob), placement.cohort
    at = f"/placements/{placement.pk}/"
    before, changes = stored(cohort), placement.changes

    def import_late() -> None:
        file = csv_file("id,Gender\nL1,F\nL2,M\n", "late.csv")
        answer = client.post(f"/cohorts/{cohort.pk}/add/", {"file": file})
        client.post(f"{answer.url}confirm/", {"version": 1})

    import_late()
    assert lines(placement)[0] == ("2 students joined and wait for a bed.", "")
    page = Page(client.get(f"/cohorts/{cohort.pk}/"))
    assert page.one("listitem", "2 students, S-1033 to S-1034").says("late.csv. bob")
    event = placement.events.first()
    question = Page(client.post(f"{at}undo/{event.pk}/"))
    asked = "This removes 2 students (S-1033 to S-1034) with their answers from First-years"
    assert question.has("paragraph", asked)
    assert cohort.students.count() == 34, "nothing is removed before the answer"
    page = Page(client.post(f"{at}undo/{event.pk}/", {"confirmed": 2}, follow=True))
    assert page.has("status", "2 students removed from First-years: S-1033 to S-1034.")
    assert stored(cohort) == before
    cohort.refresh_from_db()
    placement.refresh_from_db()
    assert (cohort.n_students, placement.changes) == (32, changes)
    assert lines(placement)[:2] == [
        ("Undone: 2 students joined and wait for a bed.", "Import the students again instead."),
        ("2 students joined and wait for a bed.", "Undone"),
    ]
    line = AuditLine.objects.get(verb="removed latecomers")
    assert (line.details["students"], line.details["which"]) == (2, "S-1033 to S-1034")
    assert line.details["source"] == "late.csv"
    page = Page(client.get(f"/cohorts/{cohort.pk}/"))
    assert page.has("listitem", "This was undone already by bob.")
    with pytest.raises(Refusal, match="Import the students again instead"):
        decision_undo(user=bob, placement=placement, event=placement.events.first())

    import_late()
    numbers = cohort.students.filter(original_id__in=["L1", "L2"]).values_list("number", flat=True)
    assert list(numbers) == [1035, 1036], "a number is never given to another student"
    assert lines(placement)[0] == ("2 students joined and wait for a bed.", "")


def test_every_placement_of_the_cohort_lets_them_go_and_later_ones_stay(
    bob: User, placement: Placement
) -> None:
    cohort = placement.cohort
    first, second = add(bob, cohort, "L1"), add(bob, cohort, "L2", "L3")
    latecomers_undo(user=bob, arrivals=first.arrivals)
    numbers = list(placement.places.values_list("number", flat=True))
    assert numbers[-2:] == list(second.numbers)
    assert 1033 not in numbers
    latecomers_undo(user=bob, arrivals=second.arrivals)
    assert placement.places.count() == cohort.students.count() == 32


def placed(bob: User, placement: Placement, number: int) -> None:
    room = placement.buildings.rooms.get(name="S0")
    placement.places.filter(room=room).update(room=None, bed=None)
    decision_make(decision=moving([Move(number, room.pk)], "in"), **options(bob, placement))


def computed(bob: User, placement: Placement, number: int) -> None:
    placement_compute(user=bob, placement=Placement.objects.get(pk=placement.pk))
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    rows = placement.versions.first().rows
    assert placement.places.get(number=number).student_id in {row[0] for row in rows}


def drafted(bob: User, placement: Placement, number: int) -> None:
    """The draft of late changes of a placement that was published before they came."""
    Placement.objects.filter(pk=placement.pk).update(published_at=timezone.now().replace(year=2020))
    draft_add(decision=withdrawing([number]), **options(bob, placement))


def lettered(bob: User, placement: Placement, number: int) -> None:
    student = placement.cohort.students.get(number=number)
    own = {"organisation": bob.organisation, "created_by": bob}
    template = LetterTemplate.objects.create(name="Room", subject="Room", text="[hall]", **own)
    Letter.objects.create(
        template=template, placement=placement, student=student, address="a@b.example", place=[]
    )


def requested(bob: User, placement: Placement, number: int) -> None:
    students = placement.cohort.students
    RoommateRequest.objects.create(
        cohort=placement.cohort,
        student=students.first(),
        target=students.get(number=number),
        source="f",
    )


def chose(bob: User, placement: Placement, number: int) -> None:
    student = placement.cohort.students.get(number=number)
    Preference.objects.create(cohort=placement.cohort, student=student, rank=1, wanted="Elm")


def paired(bob: User, placement: Placement, number: int) -> None:
    students = placement.cohort.students
    PastPair.objects.create(
        cohort=placement.cohort, first=students.first(), second=students.get(number=number)
    )


def forbidden(bob: User, placement: Placement, number: int) -> None:
    students = placement.cohort.students
    ForbiddenPair.objects.create(
        cohort=placement.cohort, first=students.first(), second=students.get(number=number)
    )


LATER_ACTS: dict[str, tuple[Callable[[User, Placement, int], object], str]] = {
    "placed": (placed, "S-1033 has a bed in Elm S0 by now (P)."),
    "withdrawn": (
        lambda bob, p, n: decision_make(decision=withdrawing([n]), **options(bob, p)),
        "S-1033 was withdrawn in P since.",
    ),
    "first on the waiting list": (
        lambda bob, p, n: turn_change(user=bob, placement=p, number=n, is_first=True),
        "S-1033 was moved on the waiting list of P.",
    ),
    "published": (
        lambda bob, p, n: placement_publish(**options(bob, p)),
        "P was published since, with S-1033 waiting.",
    ),
    "computed": (computed, "S-1033 has a room in version 2 of P."),
    "being computed": (
        lambda bob, p, n: placement_compute(user=bob, placement=p),
        "P is being computed now. Wait for it, or cancel it.",
    ),
    "in a draft": (drafted, "S-1033 is part of the open late changes of P."),
    "lettered": (lettered, "A letter was written to S-1033 since."),
    "requested": (requested, "S-1001 asked for S-1033 since."),
    "chose a hall": (chose, "S-1033 has choices of halls or rooms since."),
    "has a need": (
        lambda bob, p, n: need_add(user=bob, cohort=p.cohort, number=n, need="Ground floor"),
        "The needs or rules of S-1033 were changed since.",
    ),
    "a past roommate": (paired, "S-1033 has a past roommate by now."),
    "never with": (forbidden, "A rule about S-1033 was made since."),
}


@pytest.mark.parametrize("act", LATER_ACTS)
def test_a_later_act_refuses_the_undo_with_its_reason(
    bob: User, placement: Placement, client_of: ClientOf, act: str
) -> None:
    added = add(bob, placement.cohort, "L1", "L2")
    event = placement.events.first()
    later, reason = LATER_ACTS[act]
    later(bob, placement, 1033)
    before = stored(placement.cohort)
    assert (event.sentence, reason) in lines(placement)
    page = Page(client_of(bob).get(f"/cohorts/{placement.cohort_id}/"))
    assert page.has("listitem", reason)
    with pytest.raises(CohortError) as refusal:
        latecomers_undo(user=bob, arrivals=added.arrivals)
    assert str(refusal.value) == f"{reason} Nobody was removed."
    at = f"/placements/{placement.pk}/"
    page = Page(client_of(bob).post(f"{at}undo/{event.pk}/", {"confirmed": 2}, follow=True))
    assert page.has("alert", f"{reason} Nothing was changed.")
    assert stored(placement.cohort) == before
    assert not AuditLine.objects.filter(verb="removed latecomers").exists()
    assert not mail.outbox


def test_what_is_taken_back_allows_the_undo_again(bob: User, placement: Placement) -> None:
    added = add(bob, placement.cohort, "L1")
    room = placement.buildings.rooms.get(name="S0")
    for place in placement.places.filter(room=room):
        moves = moving([Move(place.number, None)], "out")
        decision_make(decision=moves, **options(bob, placement))
    event = decision_make(decision=moving([Move(1033, room.pk)], "in"), **options(bob, placement))
    with pytest.raises(CohortError, match="has a bed in Elm S0"):
        latecomers_undo(user=bob, arrivals=added.arrivals)
    decision_undo(user=bob, placement=placement, event=event)
    latecomers_undo(user=bob, arrivals=added.arrivals)
    assert not placement.places.filter(number=1033).exists()
    undone = placement.events.get(undoes=event)
    with pytest.raises(Refusal, match="S-1033 was changed since"):
        decision_undo(user=bob, placement=placement, event=undone)


def test_only_staff_of_the_organisation_may_remove_them(
    alice: User, bob: User, placement: Placement, mallory: User, client_of: ClientOf
) -> None:
    added = add(bob, placement.cohort, "L1")
    own = f"/cohorts/{placement.cohort_id}/add/{added.arrivals.pk}/undo/"
    event = placement.events.first()
    history = f"/placements/{placement.pk}/undo/{event.pk}/"
    for address in (own, history):
        assert client_of(alice).post(address, {"confirmed": 1}).status_code == 403
        assert client_of(mallory).post(address, {"confirmed": 1}).status_code == 404
    page = Page(client_of(alice).get(f"/cohorts/{placement.cohort_id}/"))
    assert "Late arrivals" not in page.source
    assert placement.cohort.students.count() == 33
    wrong = f"/cohorts/{placement.cohort_id}/add/{added.arrivals.pk + 1}/undo/"
    assert client_of(bob).post(wrong).status_code == 404
    assert client_of(bob).get(own).status_code == 405
    page = Page(client_of(bob).post(own, follow=True))
    assert page.has("status", "1 student removed from First-years: S-1033.")


@pytest.mark.django_db(transaction=True)
def test_of_two_staff_who_undo_at_once_one_is_told(bob: User, placement: Placement) -> None:
    """On SQLite one after the other: it lets one write at a time."""
    added = add(bob, placement.cohort, "L1", "L2")
    told: list[str] = []
    is_parallel = connection.vendor == "postgresql"
    start = threading.Barrier(2 if is_parallel else 1)

    def undo() -> None:
        found = LateArrivals.objects.get(pk=added.arrivals.pk)
        start.wait()
        try:
            told.append(latecomers_undo(user=bob, arrivals=found))
        except CohortError as refusal:
            told.append(str(refusal))
        finally:
            connection.close()

    threads = [threading.Thread(target=undo) for _ in range(2)]
    for thread in threads:
        thread.start() if is_parallel else thread.run()
    for thread in threads if is_parallel else []:
        thread.join()
    assert sorted(told) == [
        "2 students removed from First-years: S-1033 to S-1034. To add them again, import them "
        "again.",
        "This was undone already by bob. Nobody was removed.",
    ]
    fresh = Cohort.objects.get(pk=placement.cohort_id)
    assert fresh.n_students == fresh.students.count() == 32
    assert placement.events.filter(undoes__isnull=False).count() == 1


def test_an_open_file_that_names_one_of_them_by_position_refuses(
    bob: User, placement: Placement
) -> None:
    cohort = placement.cohort
    added = add(bob, cohort, "L1")
    names = cohort.students.values_list("original_id", flat=True)
    text = f"student,wants\n{names[0]},{names[1]}\nWho,{names[2]}\n"
    draft = student_file_create(
        user=bob, cohort=cohort, purpose="requests", back="", **reader_of(text)
    )
    draft.choices = {**draft.choices, "same": {"Who": 32}}
    draft.save()
    with pytest.raises(CohortError, match="by hand in the unfinished import"):
        latecomers_undo(user=bob, arrivals=added.arrivals)
    draft.choices = {**draft.choices, "same": {"Who": 3}}
    draft.save()
    latecomers_undo(user=bob, arrivals=added.arrivals)
    assert cohort.students.count() == 32
