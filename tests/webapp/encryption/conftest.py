"""An open questionnaire, and a small cohort in rooms, whose texts are encrypted."""

from collections.abc import Callable

import pytest

from tests.webapp.factories.questionnaires import Student, make_questionnaire, open_questionnaire
from tests.webapp.factories.students import imported, place_students
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import Placement
from webapp.surveys.models import Questionnaire


@pytest.fixture
def opened(bob: User) -> Questionnaire:
    """A questionnaire that is open for nine days."""
    return open_questionnaire(bob, make_questionnaire(bob))


@pytest.fixture
def student(opened: Questionnaire) -> Callable[..., Student]:
    """A function from an identifier to a student who began by the code."""
    return lambda identifier="N001": Student(opened, identifier)


@pytest.fixture
def cohort(bob: User) -> Cohort:
    return imported(bob, "First-years")


@pytest.fixture
def placement(bob: User, cohort: Cohort) -> Placement:
    """José and Zoë share Baker 12 and asked for each other; Jose lives alone, Ann has no bed."""
    return place_students(bob, cohort)
