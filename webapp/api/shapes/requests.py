"""Requests that are unclear or left out, and the mails that ask about them."""

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, RowNumber
from webapp.api.shapes.housing import StudentId
from webapp.housing.selectors.requests import UnknownName
from webapp.letters.services.questions import FIRST_SUBJECT, FIRST_TEXT, MAX_SUBJECT, MAX_TEXT


class UnknownRequest(Answer):
    """A request that names nobody for sure, with those it may mean and why they are offered."""

    id: int
    student: str
    written: str
    can_mean: list[str]
    why: str = Field(description="how what was written differs; blank when nobody is close")
    is_sure: bool = Field(description="one letter or case apart, and alone")
    times_asked: int = Field(description="how often the student was asked by e-mail")

    @classmethod
    def of(cls, found: UnknownName) -> "UnknownRequest":
        """Read a request with its candidates."""
        return cls(
            id=found.request.pk,
            student=found.request.student.label,
            written=found.request.written,
            can_mean=[student.label for student in found.near.students],
            why=found.near.why,
            is_sure=found.near.is_sure,
            times_asked=found.question.times if found.question else 0,
        )


class UnknownRequests(Answer):
    """Every request that names nobody for sure, those that can mean one student alone first."""

    requests: list[UnknownRequest]


class NewKeeps(Body):
    """Requests that count again, by id; null: all that were left out."""

    requests: list[RowNumber] | None = Field(None, max_length=10_000)


class NewSplits(Body):
    """Which group that fits no room is split, by one of its members; null: all as proposed."""

    student: StudentId | None = None


class NewQuestions(Body):
    """A mail to who made each of these unknown requests; fields in square brackets are filled."""

    requests: list[RowNumber] = Field(min_length=1, max_length=10_000)
    subject: str = Field(FIRST_SUBJECT, max_length=MAX_SUBJECT)
    text: str = Field(FIRST_TEXT, max_length=MAX_TEXT)
    reply_to: str = Field("", max_length=254)
    times_asked: int = Field(0, ge=0, le=1000, description="who was asked oftener is left alone")
