"""A demonstration of Northfield: its data loaded, its results planned, nothing prepared yet."""

import pytest

from webapp.accounts.models import Organisation, User
from webapp.cohorts.demonstration import load as load_cohorts
from webapp.demonstration.services import results_advance, results_load
from webapp.housing.demonstration import load as load_campus


@pytest.fixture
def planned(northfield: Organisation, bob: User, carol: User) -> User:
    """bob, in whose name the results will be prepared."""
    load_cohorts(northfield, bob)
    load_campus(northfield, bob)
    results_load(northfield, bob)
    return bob


def advance_while_it_can() -> None:
    """Advance until every result waits for a job or is over."""
    while results_advance():
        pass
