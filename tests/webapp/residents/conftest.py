"""Two published doubles, and students who open their personal links."""

from collections.abc import Callable

import pytest
from django.core.cache import caches
from django.urls import reverse

from tests.webapp.letters.conftest import placed_cohort, publish
from tests.webapp.reader import Reader
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Student
from webapp.housing.models import Placement
from webapp.residents.links import handle_of, page_of, token_of


@pytest.fixture(autouse=True)
def no_tries_before() -> None:
    for cache in caches.all():
        cache.clear()


@pytest.fixture
def draft(bob: User) -> Placement:
    """Anna and Ben share 101, Cleo and Dan 102, Eva lives alone, Finn has no room."""
    return placed_cohort(bob)


@pytest.fixture
def placement(draft: Placement) -> Placement:
    publish(draft)
    return draft


class Resident:
    """A student with a phone, who opened the personal link."""

    def __init__(self, student: Student, language: str = "en") -> None:
        self.page = page_of(student)
        self.client = Reader(headers={"Accept-Language": language})
        self.token = token_of(self.page)
        answer = self.client.get(reverse("residents:enter", args=[self.token]), follow=True)
        self.status = answer.status_code
        self.handle = handle_of(self.page)

    def at(self, name: str, *args: object) -> str:
        return reverse(f"residents:{name}", args=[self.handle, *args])

    def look(self) -> str:
        answer = self.client.get(self.at("home"))
        assert answer.status_code == 200
        return " ".join(answer.content.decode().split())

    def read(self) -> Page:
        return Page(self.client.get(self.at("home")))

    def share(self, other: int, contact: str = "", **more: str) -> object:
        sent = {"roommate": other, "shares": "1", "contact": contact} | more
        return self.client.post(self.at("contact"), sent)

    def stop_sharing(self, other: int) -> object:
        return self.client.post(self.at("contact"), {"roommate": other})

    def ask(self, text: str = "It is loud.", wish: str = "room") -> object:
        return self.client.post(self.at("ask"), {"wish": wish, "text": text})


@pytest.fixture
def resident(draft: Placement) -> Callable[..., Resident]:
    """A function from a number to the student who opened the link."""

    def open_link(number: int, language: str = "en") -> Resident:
        return Resident(draft.cohort.students.get(number=number), language)

    return open_link
