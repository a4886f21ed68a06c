"""Shapes of unclear and left-out requests, and of mails that ask students about them."""

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, RowNumber
from webapp.api.shapes.housing import StudentId
from webapp.housing.selectors.requests import UnknownName
from webapp.letters.services.questions import FIRST_SUBJECT, FIRST_TEXT, MAX_SUBJECT, MAX_TEXT


class UnknownRequest(Answer):
    """A request without a clear student, with candidates and the reason for each."""

    id: int
    student: str
    written: str
    can_mean: list[str]
    why: str = Field(description="how what was written differs; blank when nobody is close")
    is_sure: bool = Field(description="one letter or case apart, and alone")
    times_asked: int = Field(description="how often the student was asked by e-mail")

    @classmethod
    def of(cls, found: UnknownName) -> "UnknownRequest":
        """Return the answer for a request with its candidates."""
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
    """All requests without a clear student; those with one candidate come first."""

    requests: list[UnknownRequest]


class NewKeeps(Body):
    """Requests to count again, by id; null: all left-out requests."""

    requests: list[RowNumber] | None = Field(None, max_length=10_000)


class NewSplits(Body):
    """The group without a fitting room to split, by a member; null: all as proposed."""

    student: StudentId | None = None


class NewQuestions(Body):
    """A mail to the students with unknown requests; fields in square brackets are filled."""

    requests: list[RowNumber] = Field(min_length=1, max_length=10_000)
    subject: str = Field(FIRST_SUBJECT, max_length=MAX_SUBJECT)
    text: str = Field(FIRST_TEXT, max_length=MAX_TEXT)
    reply_to: str = Field("", max_length=254)
    times_asked: int = Field(0, ge=0, le=1000, description="who was asked oftener is left alone")
