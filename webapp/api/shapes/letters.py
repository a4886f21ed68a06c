"""Letters: templates, what stands in the way, what became of each."""

from typing import Annotated, Literal

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, Key, Paging, Time
from webapp.letters.models import Contact, LetterTemplate
from webapp.letters.models import Letter as LetterRow
from webapp.letters.recipients import Problem as LetterProblemRow

Whose = Literal[tuple(Contact.values)]


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
        """Read a template."""
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
    """A letter to be written, or what one is to be."""

    name: str
    subject: str
    text: str
    reply_to: str = ""
    contact: Whose = ""
    consent_column: str = ""


class LetterProblem(Answer):
    """What stands in the way of sending, with its fix."""

    sentence: str
    fix: str
    students: list[str]
    blocks: bool = Field(description="nothing is sent until it is solved")

    @classmethod
    def of(cls, problem: LetterProblemRow) -> "LetterProblem":
        """Read a problem."""
        return cls(
            sentence=problem.sentence,
            fix=problem.fix,
            students=[f"S-{number}" for number in problem.students],
            blocks=problem.blocks,
        )


class Sending(Answer):
    """Where the letters of a placement stand."""

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
    state: Literal["waiting", "sending", "sent", "failed", "bounced", "stopped"]
    error: str
    attempts: int
    sent_at: Time | None

    @classmethod
    def of(cls, letter: LetterRow) -> "SentLetter":
        """Read a letter with its student."""
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
    """Whose letter."""

    student: str = Field("", description="the id on screen; the first student by default")


class LetterPreview(Answer):
    """A letter as one student would read it."""

    student: str
    address: str = Field(description="blank: there is none")
    subject: str
    text: str


class NewTest(Body):
    """Where the letter of a student goes as a test."""

    student: str = Field(max_length=20)
    address: str = Field(max_length=254)


class NewBounces(Body):
    """Addresses that came back."""

    addresses: list[Annotated[str, Field(max_length=254)]] = Field(max_length=5000)
