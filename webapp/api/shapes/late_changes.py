"""Late changes: what is asked for, who would move, and what prices of a move do."""

from collections.abc import Sequence

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, Key, RowNumber
from webapp.api.shapes.housing import StudentId
from webapp.housing.models import ProposedChange
from webapp.housing.selectors.changes import ChangedPlace, compared_figures


class ChosenRoom(Body):
    """A room that staff choose for somebody within late changes."""

    student: StudentId
    room: RowNumber = Field(description="the room's id")


class NewChange(Body):
    """Late changes to be worked out at a price of a move."""

    price: float = Field(description="what a move costs, score")
    pinned: list[StudentId] = Field(
        default=[], description="students who stay where they are", max_length=1000
    )
    chosen: list[ChosenRoom] = Field(
        default=[], description="rooms that you choose for students", max_length=1000
    )


class Moving(Answer):
    """A student whose room would change."""

    student: str
    before: int | None = Field(description="the room's id")
    after: int | None
    why: str = Field(description="the reason, in one sentence")
    gain: float | None = Field(description="what the student's own score gains or loses")

    @classmethod
    def of(cls, row: ChangedPlace) -> "Moving":
        """Read one who would move."""
        return cls(
            student=row.label,
            before=row.before.pk if row.before else None,
            after=row.after.pk if row.after else None,
            why=row.reason,
            gain=row.gain,
        )


class PricePoint(Answer):
    """What a price of a move does."""

    price: float
    moves: int
    score: float
    without_room: int


class ComparedFigure(Answer):
    """A figure before and after late changes, in words."""

    title: str
    before: str
    after: str
    difference: str


class Change(Answer):
    """What would change, kept all or none."""

    id: int
    price: float
    pinned: list[str]
    chosen: list[ChosenRoom]
    is_ready: bool
    is_stale: bool = Field(description="the placement changed since; work it out again")
    moves: list[Moving]
    figures: list[ComparedFigure]
    curve: list[PricePoint] = Field(description="prices that are worked out so far")
    job: Key | None

    @classmethod
    def of(cls, change: ProposedChange, moves: Sequence[ChangedPlace]) -> "Change":
        """Read a proposed change with who would move."""
        chosen = [ChosenRoom(student=f"S-{n}", room=room) for n, room in change.chosen.items()]
        curve = [
            PricePoint(price=p, moves=int(n), score=score, without_room=int(without))
            for p, n, score, without in change.curve
        ]
        return cls(
            id=change.pk,
            price=change.price,
            pinned=[f"S-{number}" for number in change.pinned],
            chosen=chosen,
            is_ready=change.is_ready,
            is_stale=change.is_stale,
            moves=[Moving.of(row) for row in moves],
            figures=[
                ComparedFigure.model_validate(line) for line in compared_figures(change.outcomes)
            ],
            curve=curve,
            job=change.job_id or None,
        )
