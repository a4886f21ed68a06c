"""Questionnaires: how far people are, who is invited, whose mails come back. Never an answer."""

from typing import Annotated

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, Key, Time
from webapp.surveys.models import Questionnaire as QuestionnaireRow
from webapp.surveys.selectors import progress_of

Address = Annotated[str, Field(max_length=254)]


class Questionnaire(Answer):
    """A questionnaire with how many people are how far; the counts add up to ``people``."""

    id: Key
    title: str
    code: str
    questions: int
    opens_at: Time | None
    closes_at: Time | None
    is_open: bool
    people: int
    finished: int
    started: int
    opened: int
    not_opened: int
    bounced: int = Field(description="people whose address no mail reaches")

    @classmethod
    def of(cls, row: QuestionnaireRow) -> "Questionnaire":
        """Read a questionnaire."""
        found = progress_of(row)
        return cls(
            id=row.pk,
            title=row.title,
            code=row.code,
            questions=sum(len(section["questions"]) for section in row.content["sections"]),
            opens_at=row.opens_at,
            closes_at=row.closes_at,
            is_open=row.is_open,
            people=found.n_people,
            finished=found.n_finished,
            started=found.n_started,
            opened=found.n_opened,
            not_opened=found.n_unopened,
            bounced=row.participants.exclude(bounced_at=None).count(),
        )


class Invited(Body):
    """Somebody to be invited."""

    email: Address
    number: str = Field("", max_length=200, description="the student number, if there is one")


class NewInvitations(Body):
    """Who is invited; who is there already stays as they are."""

    people: list[Invited] = Field(max_length=5000)


class NewMails(Body):
    """The text of a mail; [link] becomes the personal link of each."""

    text: str = Field(max_length=4000)
    is_reminder: bool = Field(False, description="to who had mail and has not finished")


class NewCohort(Body):
    """The name of the cohort of who finished since the last one."""

    name: str


class ReturnedMail(Body):
    """An address that came back."""

    email: Address
    reason: str = Field("", max_length=200, description="what the mail server said")


class ReturnedMails(Body):
    """Addresses that no mail reaches."""

    addresses: list[ReturnedMail] = Field(max_length=5000)
