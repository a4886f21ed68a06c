"""Shapes of letters: templates, problems, and deliveries."""

from typing import Annotated

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, Key, OneOf, Paging, Time
from webapp.letters.models import Contact, LetterTemplate
from webapp.letters.models import Letter as LetterRow
from webapp.letters.recipients import Problem as LetterProblemRow

Whose = Annotated[str, OneOf(Contact.values)]


class Letter(Answer):
    """A letter with named fields, for every student of a placement."""

    id: Key
    name: str
    subject: str
    text: str
    reply_to: str
    contact: Whose = Field(description="whose e-mail roommates read: nobody's, agreed or all")
    consent_column: str
    updated_at: Time

    @classmethod
    def of(cls, template: LetterTemplate) -> "Letter":
        """Return the answer for a template."""
        return cls(
            id=template.pk,
            name=template.name,
            subject=template.subject,
            text=template.text,
            reply_to=template.reply_to,
            contact=template.contact,
            consent_column=template.consent_column,
            updated_at=template.updated_at,
        )


class NewLetter(Body):
    """A letter to create, or the new values of a letter."""

    name: str
    subject: str
    text: str
    reply_to: str = ""
    contact: Whose = ""
    consent_column: str = ""


class LetterProblem(Answer):
    """A problem that prevents sending, with its fix."""

    sentence: str
    fix: str
    students: list[str]
    blocks: bool = Field(description="nothing is sent until it is solved")

    @classmethod
    def of(cls, problem: LetterProblemRow) -> "LetterProblem":
        """Return the answer for a problem."""
        return cls(
            sentence=problem.sentence,
            fix=problem.fix,
            students=[f"S-{number}" for number in problem.students],
            blocks=problem.blocks,
        )


class Sending(Answer):
    """State of the letters of a placement."""

    due: int = Field(description="students who would get it now")
    due_again: int = Field(description="of these: because room, bed or roommates changed")
    waiting: int
    sent: int
    failed: int
    bounced: int
    stopped: int
    problems: list[LetterProblem]


class SentLetter(Answer):
    """One letter to one student."""

    student: str
    address: str
    number: int = Field(description="the how-manieth of this template to this student")
    state: Annotated[str, OneOf(("waiting", "sending", "sent", "failed", "bounced", "stopped"))]
    error: str
    attempts: int
    sent_at: Time | None

    @classmethod
    def of(cls, letter: LetterRow) -> "SentLetter":
        """Return the answer for a letter with its student."""
        return cls(
            student=letter.student.label,
            address=letter.address,
            number=letter.number,
            state=letter.state,
            error=letter.error,
            attempts=letter.attempts,
            sent_at=letter.sent_at,
        )


class PreviewQuery(Paging):
    """Query for the student of a preview."""

    student: str = Field("", description="the id on screen; the first student by default")


class LetterPreview(Answer):
    """A letter as one student would read it."""

    student: str
    address: str = Field(description="blank: there is none")
    subject: str
    text: str


class NewTest(Body):
    """Recipient of a student's letter sent as a test."""

    student: str = Field(max_length=20)
    address: str = Field(max_length=254)


class NewBounces(Body):
    """Addresses that bounced."""

    addresses: list[Annotated[str, Field(max_length=254)]] = Field(max_length=5000)
