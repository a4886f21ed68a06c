"""Versions are planned before the placement is locked; a change in between still counts."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.webapp.factories.campus import RULES
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.services.latecomers import latecomers_add
from webapp.housing.errors import PlacesChangedError
from webapp.housing.models import BuildingList, Place, Placement, PlacementVersion, RoommateRequest
from webapp.housing.rules import MUST
from webapp.housing.selectors.outcomes import outcome
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.services import versions
from webapp.housing.services.fitting import fit_version, plan_version
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.needs import need_add
from webapp.housing.services.versions import (
    computed_version,
    places_prepare,
    plan_ahead,
    version_store,
    version_use,
)
from webapp.matching.models import ForbiddenPair, LearnedModel

Change = Callable[[User, Placement], object]


@pytest.fixture
def placement(
    bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel
) -> Placement:
    """A placement that nobody computed yet."""
    return Placement.objects.create(
        organisation=bob.organisation,
        name="P",
        cohort=first_years,
        buildings=campus,
        model=learned,
        rules={**RULES.to_json(), "mutual": MUST, "one_sided": MUST},
    )


def found(user: User, placement: Placement) -> PlacementVersion:
    """The version of a run that fills one room after the other, by gender."""
    beds = {
        gender: [
            room.pk
            for room in placement.buildings.rooms.filter(designation=gender)
            for _ in range(room.capacity)
        ]
        for gender in "FM"
    }
    students = placement.cohort.students.order_by("number")
    return computed_version(
        placement=placement,
        job=None,
        user=user,
        rules=placement.rules,
        rooms={one.pk: (beds[one.attributes["Gender"]] or [None]).pop() for one in students},
        doubts={one.pk: 0.25 for one in students},
        figures={"relative_gap": 0.001},
        outcomes={**outcome(PlacementRooms(placement)), "moved": 0},
    )


def roommates(version: PlacementVersion) -> tuple[int, int]:
    """Keys of two students of one room."""
    by_room: dict[int, int] = {}
    for key, room, *_ in version.rows:
        if room in by_room:
            return by_room[room], key
        if room is not None:
            by_room[room] = key
    raise AssertionError("nobody shares a room")


def used_room(placement: Placement) -> int:
    return next(row[1] for row in found(placement.created_by, placement).rows if row[1] is not None)


def lose_a_bed(_user: User, placement: Placement) -> None:
    placement.buildings.rooms.filter(pk=used_room(placement)).update(capacity=1)


def lose_a_room(_user: User, placement: Placement) -> None:
    placement.buildings.rooms.filter(pk=used_room(placement)).delete()


def keep_roommates_apart(user: User, placement: Placement) -> None:
    first, second = roommates(found(user, placement))
    ForbiddenPair.objects.create(cohort=placement.cohort, first_id=first, second_id=second)


def ask_for_somebody_elsewhere(user: User, placement: Placement) -> None:
    first, _ = roommates(found(user, placement))
    there = dict(placement.cohort.students.values_list("pk", "attributes"))
    other = [k for k in there if there[k]["Gender"] == there[first]["Gender"]][-1]
    RoommateRequest.objects.create(
        cohort=placement.cohort, student_id=first, target_id=other, source="by hand"
    )


def lock_somebody(user: User, placement: Placement) -> None:
    first, second = roommates(found(user, placement))
    room = placement.buildings.rooms.exclude(pk=used_room(placement)).first()
    placement.places.filter(student__in=[first, second]).update(is_locked=True)
    placement.places.filter(student=first).update(room=room, bed=1)


def take_somebody_out(user: User, placement: Placement) -> None:
    first, _ = roommates(found(user, placement))
    placement.places.filter(student=first).update(has_left=True)


def give_own_days(user: User, placement: Placement) -> None:
    first, _ = roommates(found(user, placement))
    placement.places.filter(student=first).update(
        arrives_on=timezone.localdate(), leaves_on=timezone.localdate() + timedelta(days=9)
    )


def add_a_need(user: User, placement: Placement) -> None:
    number = placement.places.order_by("number").values_list("number", flat=True)[0]
    need_add(user=user, cohort=placement.cohort, number=number, need="ground floor")


def add_somebody(user: User, placement: Placement) -> None:
    rows = [{"id": "L1", "Gender": "F"}]
    latecomers_add(user=user, cohort=placement.cohort, rows=rows, source="late.csv")


def publish_a_room_elsewhere(user: User, placement: Placement) -> None:
    other = Placement.objects.create(
        organisation=user.organisation,
        name="Others",
        cohort=Cohort.objects.exclude(pk=placement.cohort_id).first(),
        buildings=placement.buildings,
        model=placement.model,
        rules=placement.rules,
        published_at=timezone.now(),
    )
    student = other.cohort.students.first()
    Place.objects.create(
        placement=other,
        student=student,
        number=student.number,
        room_id=used_room(placement),
        bed=1,
    )


def rows_of(placement: Placement) -> list[tuple[object, ...]]:
    places = placement.places.order_by("number")
    return list(places.values_list("number", "room", "bed", "is_locked", "has_left", "score"))


def rows_without_plan(version: PlacementVersion) -> list[tuple[object, ...]]:
    """The rows that storing a version without a plan writes; all of it is taken back."""
    same = PlacementVersion(
        placement=Placement.objects.get(pk=version.placement_id),
        origin=version.origin,
        rules=version.rules,
        rows=version.rows,
        figures=version.figures,
        outcome=version.outcome,
    )
    with transaction.atomic():
        version_store(same)
        rows = rows_of(same.placement)
        transaction.set_rollback(True)
    return rows


def test_places_are_made_in_pieces(
    bob: User, placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could decide for seconds, on SQLite, while 10,000 places were made at once.

    A run that was killed between two pieces leaves some places.
    """
    students = placement.cohort.students.all()[:7]
    Place.objects.bulk_create(
        Place(placement=placement, student=s, number=s.number) for s in students
    )
    seated: list[int] = []

    def lock_and_count(placement: Placement) -> Placement:
        seated.append(placement.places.count())
        return lock_placement(placement)

    monkeypatch.setattr(versions, "PIECE", 10)
    monkeypatch.setattr(versions, "lock_placement", lock_and_count)
    now = places_prepare(placement)
    assert seated == [7, 17, 27]
    assert (now.n_people, now.n_placed, now.places.count()) == (32, 0, 32)
    assert places_prepare(now).places.count() == 32


def test_a_plan_writes_what_would_be_written_without_one(bob: User, placement: Placement) -> None:
    now = places_prepare(placement)
    version = found(bob, now)
    plan = plan_ahead(now, version)
    assert plan is not None
    expected = rows_without_plan(version)
    with transaction.atomic():
        with CaptureQueriesContext(connection) as queries:
            assert plan.holds(lock_placement(now))
        assert not any(query["sql"].startswith(("INSERT", "UPDATE")) for query in queries)
        version_store(plan.version, plan)
    assert rows_of(placement) == expected
    assert any(row[1] is not None for row in expected)
    placement.refresh_from_db()
    assert placement.revision == 1
    assert placement.current == plan.version
    assert set(placement.places.values_list("doubt", flat=True)) == {0.25}


@pytest.mark.parametrize(
    "change",
    [
        lose_a_bed, lose_a_room, keep_roommates_apart, ask_for_somebody_elsewhere, lock_somebody,
        take_somebody_out, give_own_days, add_a_need, add_somebody, publish_a_room_elsewhere,
    ],
)  # fmt: skip
def test_what_changed_since_the_plan_counts(
    bob: User, placement: Placement, change: Change
) -> None:
    now = places_prepare(placement)
    version = found(bob, now)
    plan = plan_ahead(now, version)
    assert plan is not None
    change(bob, now)
    with transaction.atomic():
        assert not plan.holds(lock_placement(now))
    expected = rows_without_plan(version)
    with transaction.atomic():
        version_store(version, plan)
    assert rows_of(placement) == expected


def test_a_published_placement_is_planned_under_the_lock(bob: User, placement: Placement) -> None:
    """Offers and other publications decide there too, and are read under the lock alone."""
    now = places_prepare(placement)
    with transaction.atomic():
        version_store(found(bob, now))
    Placement.objects.filter(pk=placement.pk).update(published_at=timezone.now())
    now = places_prepare(placement)
    with transaction.atomic():
        second = version_store(swapped(found(bob, now)))
    plan = plan_version(now, second)
    with transaction.atomic():
        assert not plan.holds(lock_placement(now))
    digest = fit_version(now, second).digest
    event = version_use(user=bob, placement=now, number=second.number, digest=digest)
    assert event.sentence.startswith("Version 2 taken into force")


def test_no_plan_is_made_for_rooms_about_which_staff_decide(
    bob: User, placement: Placement
) -> None:
    now = places_prepare(placement)
    with transaction.atomic():
        version_store(found(bob, now))
    again = places_prepare(placement)
    assert plan_ahead(again, found(bob, again)) is None


def test_a_change_between_the_plan_and_the_lock_refuses_what_was_confirmed(
    bob: User, placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = places_prepare(placement)
    with transaction.atomic():
        version_store(found(bob, now))
    now = places_prepare(placement)
    with transaction.atomic():
        second = version_store(swapped(found(bob, now)))
    digest = fit_version(now, second).digest

    def lock_later(placement: Placement) -> Placement:
        placement.places.filter(room__isnull=False).update(is_locked=True)
        return lock_placement(placement)

    with monkeypatch.context() as patched:
        patched.setattr(versions, "lock_placement", lock_later)
        with pytest.raises(PlacesChangedError):
            version_use(user=bob, placement=now, number=second.number, digest=digest)
    event = version_use(user=bob, placement=now, number=second.number, digest=digest)
    assert event.sentence.startswith("Version 2 taken into force")


def swapped(version: PlacementVersion) -> PlacementVersion:
    """The same version with two students of one gender in each other's rooms."""
    gender = dict(version.placement.cohort.students.values_list("pk", "attributes"))
    one = next(row for row in version.rows if row[1] is not None)
    other = next(
        row
        for row in version.rows
        if row[1] not in (None, one[1]) and gender[row[0]]["Gender"] == gender[one[0]]["Gender"]
    )
    one[1], other[1] = other[1], one[1]
    return version
