"""Questionnaires, and students who answer them without an account."""

from collections.abc import Sequence
from datetime import timedelta

from django.test import Client
from django.utils import timezone

from tests.webapp.reader import Reader
from webapp.accounts.models import User
from webapp.cohorts.models import Draft
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import Question, questions_of
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open
from webapp.surveys.services.translation_files import translation_file_create

# What students who answered all questions page by page left: their answers by number of the
# question, and whether they have finished.
_walked: dict[str, tuple[dict[int, object], bool]] = {}


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


def _without_keys(questions: Sequence[Question]) -> str:
    """Return questions as a text without their keys, which are drawn for each questionnaire."""
    text = repr(questions)
    for question in questions:
        text = text.replace(repr(question.key), str(question.number))
    return text


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
        """Answer all questions and finish: page by page, or by the rows of who did so before.

        In a process the first student of each ``k`` walks through the pages of a questionnaire.
        """
        questions = questions_of(self.questionnaire.content)
        kind = f"{k} {_without_keys(questions)}"
        row = self.row
        is_new = row.questionnaire.is_open and not row.answers and row.finished_at is None
        if not is_new or kind not in _walked:
            self._walk(questions, k)
            if is_new:
                row = self.row
                left = {q.number: row.answers[q.key] for q in questions if q.key in row.answers}
                _walked[kind] = left, row.finished_at is not None
            return
        left, is_finished = _walked[kind]
        row.answers = {q.key: left[q.number] for q in questions if q.number in left}
        row.updated_at = timezone.now()
        row.finished_at = row.updated_at if is_finished else None
        row.save(update_fields=["answers", "finished_at", "updated_at"])

    def _walk(self, questions: Sequence[Question], k: int) -> None:
        for question in questions:
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
