"""A choice is checked before the lock: what changes until the lock is taken still decides."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.webapp.roles import Page
from tests.webapp.room_choice.conftest import Chooser, choose, request_each_other
from tests.webapp.room_choice.test_students import room, where
from webapp.accounts.models import User
from webapp.housing.models import Placement
from webapp.matching.models import ForbiddenPair
from webapp.room_choice.errors import ChoiceError
from webapp.room_choice.models import ChoiceRound
from webapp.room_choice.services import choosing
from webapp.room_choice.services import rounds as services

UNDER_LOCK = 16  # queries, with the two that lock
Meanwhile = Callable[[Callable[[], None]], None]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """A function that lets something happen once, between the check and the lock of a choice."""
    lock = choosing._locked

    def arrange(act: Callable[[], None]) -> None:
        todo = [act]

        def locked(placement: Placement) -> Placement:
            while todo:
                todo.pop()()
            return lock(placement)

        monkeypatch.setattr(choosing, "_locked", locked)

    return arrange


def student(placement: Placement, number: int) -> object:
    return placement.cohort.students.get(number=number)


def test_the_last_bed_goes_to_the_student_who_was_first(
    round: ChoiceRound, chooser: Callable[..., Chooser], free: Placement, meanwhile: Meanwhile
) -> None:
    target = room(free, "100")
    choose(student(free, 1008), target.pk)
    late = chooser(1006)

    def fill() -> None:
        free.places.filter(number=1010).update(room=target, bed=2, is_locked=True)

    meanwhile(fill)
    page = Page(late.choose(target.pk), status=409)
    assert page.has("alert", "Somebody took room Alder 100 a moment ago.")
    assert 1006 not in where(free)


def test_students_who_may_not_share_any_more_are_not_put_together(
    round: ChoiceRound, chooser: Callable[..., Chooser], free: Placement, meanwhile: Meanwhile
) -> None:
    target = room(free, "100")
    choose(student(free, 1008), target.pk)
    late = chooser(1006)
    meanwhile(
        lambda: ForbiddenPair.objects.create(
            cohort=free.cohort, first=student(free, 1006), second=student(free, 1008)
        )
    )
    assert late.choose(target.pk).status_code == 409
    assert where(free) == {1008: "100"}


@pytest.mark.parametrize("what", ["pause", "publish", "close room", "request", "leave"])
def test_what_staff_and_others_do_meanwhile_decides(
    bob: User,
    round: ChoiceRound,
    chooser: Callable[..., Chooser],
    free: Placement,
    meanwhile: Meanwhile,
    what: str,
) -> None:
    late, target = chooser(1006), room(free, "100")
    acts = {
        "pause": lambda: services.round_pause(user=bob, round=round, version=round.version),
        "publish": lambda: Placement.objects.filter(pk=free.pk).update(published_at=timezone.now()),
        "close room": lambda: free.buildings.rooms.filter(pk=target.pk).update(state="offline"),
        "request": lambda: request_each_other(free, 1006, 1008),
        "leave": lambda: free.places.filter(number=1006).update(has_left=True),
    }
    meanwhile(acts[what])
    assert late.choose(target.pk).status_code in (404, 409)
    assert where(free) == {}


def test_little_happens_under_the_lock(
    round: ChoiceRound, chooser: Callable[..., Chooser], free: Placement
) -> None:
    one, target = chooser(1002), room(free, "100").pk
    seen = one.turn.seen
    with CaptureQueriesContext(connection) as caught:
        assert one.choose(target, seen).status_code == 302
    queries = [query["sql"] for query in caught.captured_queries]
    begun = next(k for k, sql in enumerate(queries) if sql.startswith(("SAVEPOINT", "BEGIN")))
    ended = next(k for k, sql in enumerate(queries) if sql.startswith(("RELEASE", "COMMIT")))
    assert ended - begun - 1 <= UNDER_LOCK


def test_a_full_queue_is_said_and_changes_nothing(
    round: ChoiceRound,
    chooser: Callable[..., Chooser],
    free: Placement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = chooser(1006)
    monkeypatch.setattr(choosing, "QUEUE_SECONDS", 0.01)
    turn = one.turn
    with choosing._queue, pytest.raises(ChoiceError, match="busy"):
        choosing.room_choose(turn=turn, room_id=room(free, "100").pk, seen=turn.seen)
    assert where(free) == {}
