"""The order of a waiting list: by date, needs, a column or lottery, and moves by hand."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.webapp.waiting.conftest import WAITING
from webapp.accounts.models import User
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.waiting import (
    lottery_ticket,
    place_in_line,
    waiting_list_of,
    waiting_order,
)
from webapp.housing.services.undo import decision_undo
from webapp.housing.services.waiting import turn_change
from webapp.waiting.services import waiting_list_set


def order_by(bob: User, placement: Placement, **rule: str) -> list[int]:
    waiting_list_set(
        user=bob, placement=placement, hours=48, is_automatic=True, skips_unreachable=False, **rule
    )
    found = waiting_order(placement)
    assert PlacementRooms(placement).homeless == found, "every page has one order"
    return found


def test_the_date_added_comes_before_the_number(bob: User, placement: Placement) -> None:
    assert waiting_order(placement) == list(WAITING)
    earlier = timezone.now() - timedelta(days=3)
    placement.places.filter(number=1009).update(added_at=earlier)
    assert order_by(bob, placement, rule="added") == [1009, 1006, 1007, 1008]


def test_students_with_needs_come_first(bob: User, placement: Placement) -> None:
    placement.rules = {**placement.rules, "needs": ["Needs"]}
    placement.save(update_fields=["rules"])
    assert order_by(bob, placement, rule="needs") == [1008, 1006, 1007, 1009]


def test_values_of_a_column_come_in_the_order_that_staff_list(
    bob: User, placement: Placement
) -> None:
    found = order_by(bob, placement, rule="column", column="Year", values="senior, JUNIOR")
    assert found == [1007, 1009, 1008, 1006]
    with pytest.raises(HousingError, match="no such column"):
        order_by(bob, placement, rule="column", column="Shoe size")
    assert waiting_list_of(placement).column == "Year"


def test_a_lottery_is_repeated_by_its_seed_and_newcomers_move_nobody(
    bob: User, placement: Placement
) -> None:
    found = order_by(bob, placement, rule="lottery", seed="moving day")
    assert found == sorted(WAITING, key=lambda number: lottery_ticket("moving day", number))
    placement.places.filter(number=found[1]).update(has_left=True)
    assert waiting_order(placement) == [found[0], *found[2:]]
    order_by(bob, placement, rule="lottery")
    assert len(waiting_list_of(placement).seed) == 8, "a random seed, which pages show"


def test_a_move_by_hand_has_a_reason_and_is_undone(bob: User, placement: Placement) -> None:
    event = turn_change(
        user=bob, placement=placement, number=1008, is_first=True, reason="Came by train"
    )
    assert event.sentence == "S-1008 is first on the waiting list: Came by train."
    assert waiting_order(placement)[0] == 1008
    assert place_in_line(placement, 1008) == (1, 4)
    decision_undo(user=bob, placement=placement, event=event)
    assert waiting_order(placement) == list(WAITING)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rule": "alphabet"},
        {"rule": "added", "hours": 0},
        {"rule": "lottery", "seed": "s" * 41},
        {"rule": "added", "values": "v" * 401},
    ],
)
def test_nonsense_is_refused_and_changes_nothing(
    wrong: dict[str, object], bob: User, placement: Placement
) -> None:
    usual = {"hours": 48, "is_automatic": True, "skips_unreachable": False}
    with pytest.raises(HousingError):
        waiting_list_set(user=bob, placement=placement, **(usual | wrong))
    assert waiting_list_of(placement).pk is None
