"""Shapes of late changes: their settings, the moves, and the effect of the price of a move."""

from collections.abc import Sequence

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, Key, RowNumber
from webapp.api.shapes.housing import StudentId
from webapp.housing.models import ProposedChange
from webapp.housing.selectors.changes import ChangedPlace, compared_figures
from webapp.housing.selectors.drafts import ChangeLine, DraftView


class ChosenRoom(Body):
    """A room that staff choose for a student within late changes."""

    student: StudentId
    room: RowNumber = Field(description="the room's id")


class NewChange(Body):
    """Late changes to compute at a price of a move."""

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
        """Return the answer for a student who would move."""
        return cls(
            student=row.label,
            before=row.before.pk if row.before else None,
            after=row.after.pk if row.after else None,
            why=row.reason,
            gain=row.gain,
        )


class PricePoint(Answer):
    """Effect of one price of a move."""

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
    """Proposed moves, to be kept all or none."""

    id: int
    price: float
    pinned: list[str]
    chosen: list[ChosenRoom]
    is_ready: bool
    is_stale: bool = Field(description="one of these students or rooms changed since")
    moves: list[Moving]
    figures: list[ComparedFigure]
    curve: list[PricePoint] = Field(description="prices that are worked out so far")
    job: Key | None

    @classmethod
    def of(
        cls, change: ProposedChange, moves: Sequence[ChangedPlace], *, is_stale: bool
    ) -> "Change":
        """Return the answer for a proposed change with its moves."""
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
            is_stale=is_stale,
            moves=[Moving.of(row) for row in moves],
            figures=[
                ComparedFigure.model_validate(line) for line in compared_figures(change.outcomes)
            ],
            curve=curve,
            job=change.job_id or None,
        )


class DraftLine(Answer):
    """A student of a draft by hand."""

    student: str
    before: int | None = Field(description="the room of now, its id")
    after: int | None = Field(description="the room then, its id; null: no room")
    kind: str = Field(description="change, get, lose, withdraw or return")

    @classmethod
    def of(cls, line: ChangeLine) -> "DraftLine":
        """Return the answer for a line of a draft."""
        return cls(
            student=line.label,
            before=line.before.pk if line.before else None,
            after=line.after.pk if line.after else None,
            kind=line.kind,
        )


class Draft(Answer):
    """Late changes that a person collected by hand; nothing moves before they are confirmed."""

    id: int
    owner: str
    people: int = Field(description="how many students are concerned; confirm this number")
    version: int = Field(description="of the placement; confirm it with the number")
    students: list[DraftLine]

    @classmethod
    def of(cls, view: DraftView) -> "Draft":
        """Return the answer for a draft by hand."""
        return cls(
            id=view.draft.pk,
            owner=view.draft.owner.get_username() if view.draft.owner else "",
            people=len(view.lines),
            version=view.draft.placement.version,
            students=[DraftLine.of(line) for line in view.lines],
        )


class ConfirmedDraft(Body):
    """Confirmation: the number of students, and the version of the placement that was shown."""

    people: int = Field(ge=0)
    version: RowNumber
