"""A placement in pairs that the solver made, and what tests read of it."""

from collections.abc import Callable, Iterator

import pytest
from django.db.models import QuerySet

from tests.webapp.factories.university import check_agrees
from webapp.housing.models import ActKind, PlacedPair, Placement, PlacementEvent


@pytest.fixture
def placement(make_pairs: Callable[..., Placement]) -> Iterator[Placement]:
    """A placement; whatever a test does to its pairs, the counts that lists show stay true."""
    made = make_pairs()
    yield made
    left = Placement.objects.filter(pk=made.pk).first()
    if left is not None:
        check_agrees(left)


def acts_of(placement: Placement) -> QuerySet[PlacementEvent]:
    """Return the acts of people, without the computed versions."""
    return placement.events.exclude(kind=ActKind.VERSION)


def two_of(placement: Placement, gender: str = "F") -> list[PlacedPair]:
    """Return two proposed pairs of one gender."""
    return list(placement.pairs.filter(first__attributes__Gender=gender)[:2])
