"""Students who open their personal links to the pages of residents."""

from django.urls import reverse

from tests.webapp.reader import Reader
from tests.webapp.roles import Page
from webapp.cohorts.models import Student
from webapp.residents.links import handle_of, page_of, token_of


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
