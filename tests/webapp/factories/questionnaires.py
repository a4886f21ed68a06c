"""Questionnaires, and students who answer them without an account."""

from datetime import timedelta

from django.test import Client
from django.utils import timezone

from tests.webapp.reader import Reader
from webapp.accounts.models import User
from webapp.cohorts.models import Draft
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import questions_of
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open
from webapp.surveys.services.translation_files import translation_file_create


def make_questionnaire(user: User) -> Questionnaire:
    """Make a questionnaire that nobody has opened."""
    return questionnaire_create(user=user, title="Housing 2027", form="housing")


def open_questionnaire(user: User, draft: Questionnaire) -> Questionnaire:
    """Open a questionnaire for nine days."""
    closes_at = timezone.now() + timedelta(days=9)
    questionnaire_open(user=user, questionnaire=draft, closes_at=closes_at)
    return draft


def a_translation_file(user: User, questionnaire: Questionnaire, data: bytes) -> Draft:
    """Upload a file of translations that is not used yet."""
    return translation_file_create(
        user=user, questionnaire=questionnaire, filename="l.csv", size=len(data), read=lambda: data
    )


def enter(client: Client, link: str) -> str:
    """Open a personal link; return the address of the questionnaire to which it leads."""
    while not link.startswith("/q/mine/"):
        answer = client.get(link)
        if answer.status_code != 302:
            break
        link = answer.url
    return link


class Student:
    """Somebody with a phone: a browser without scripts, which keeps cookies.

    ``link`` is the personal link, ``url`` the address at which they answer.
    """

    def __init__(self, questionnaire: Questionnaire, identifier: str = "", token: str = "") -> None:
        self.client = Reader(headers={"Accept-Language": "en"})
        self.questionnaire = questionnaire
        self.link = f"/q/{token}/"
        if identifier:
            answer = self.client.post(f"/q/code/{questionnaire.code}/", {"identifier": identifier})
            self.link = answer.url.partition("?")[0]
        self.url = enter(self.client, self.link)

    def say(self, number: int, *answers: object, action: str = "next") -> object:
        fields = {"n": number, "answer": [str(a) for a in answers], "action": action}
        return self.client.post(self.url, fields)

    def say_all(self, k: int = 0) -> None:
        for question in questions_of(self.questionnaire.content):
            if question.options:
                self.say(question.number, (k * question.number) % len(question.options))
            elif question.kind == "time":
                self.say(question.number, f"{20 + k % 4}:15")
            else:
                self.say(question.number, action="skip")
        self.client.post(self.url, {"action": "finish"})

    @property
    def row(self) -> Participant:
        return Participant.objects.get(pk=self.link.strip("/").split("/")[1].split(".")[0])
