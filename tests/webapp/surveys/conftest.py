"""A questionnaire that is open, and students who have no account."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

from tests.webapp.factories.questionnaires import Student, make_questionnaire, open_questionnaire
from tests.webapp.factories.tries import forget_tries
from webapp.accounts.models import User
from webapp.surveys.links import token_of
from webapp.surveys.models import Participant, Questionnaire


@pytest.fixture(autouse=True)
def no_tries_before() -> None:
    forget_tries()


@pytest.fixture
def draft(bob: User) -> Questionnaire:
    """A questionnaire that nobody has opened."""
    return make_questionnaire(bob)


@pytest.fixture
def opened(bob: User, draft: Questionnaire) -> Questionnaire:
    """The same, open for nine days."""
    return open_questionnaire(bob, draft)


def weight_of(page: str) -> int:
    """Bytes of a student's page with everything that it can load, as nothing is compressed."""
    names = re.findall(r'(?:src|href)="/static/([^"]+)"', page)
    files = {Path(finders.find(name)) for name in names}
    style = Path(finders.find("css/student.css"))
    assert "font: 400 16px/24px var(--font)" in style.read_text(encoding="utf-8")
    fonts = re.findall(r'url\("([^"]+)"\)', style.read_text(encoding="utf-8"))
    assert style in files
    assert fonts
    files |= {style.parent / font for font in fonts}
    return len(page.encode()) + sum(file.stat().st_size for file in files)


@pytest.fixture
def student(opened: Questionnaire) -> Callable[..., Student]:
    """A function from an identifier to a student who began by the code."""
    return lambda identifier="N001": Student(opened, identifier)


@pytest.fixture
def invited(opened: Questionnaire) -> Student:
    """A student with a personal link."""
    row = Participant.objects.create(questionnaire=opened, email="anna@northfield.example")
    return Student(opened, token=token_of(row))
