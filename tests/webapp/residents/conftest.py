"""Two published doubles, and students who open their personal links."""

from collections.abc import Callable

import pytest

from tests.webapp.factories.placed import placed_cohort, publish
from tests.webapp.factories.residents import Resident
from tests.webapp.factories.tries import forget_tries
from webapp.accounts.models import User
from webapp.housing.models import Placement


@pytest.fixture(autouse=True)
def no_tries_before() -> None:
    forget_tries()


@pytest.fixture
def draft(bob: User) -> Placement:
    """Anna and Ben share 101, Cleo and Dan 102, Eva lives alone, Finn has no room."""
    return placed_cohort(bob)


@pytest.fixture
def placement(draft: Placement) -> Placement:
    publish(draft)
    return draft


@pytest.fixture
def resident(draft: Placement) -> Callable[..., Resident]:
    """A function from a number to the student who opened the link."""

    def open_link(number: int, language: str = "en") -> Resident:
        return Resident(draft.cohort.students.get(number=number), language)

    return open_link
