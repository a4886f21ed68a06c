"""Shapes of terms, dates of beds, needs in the words of students, and rounds of room choice."""

from typing import Annotated

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, Day, RowNumber, Time
from webapp.api.shapes.housing import StudentId
from webapp.housing.models import Term as TermRow
from webapp.housing.models.need import MAX_NEED
from webapp.housing.models.term import MAX_TERM_CODE, MAX_TERM_NAME
from webapp.housing.selectors.need_meanings import NeedWords
from webapp.room_choice.models import ChoiceRound, RoundState
from webapp.room_choice.selectors.boards import Board


class Term(Answer):
    """A term of the organisation; its beds are taken from the first to the last day."""

    id: int
    name: str
    code: str = Field(description="its name in the student system; may be blank")
    starts_on: Day
    ends_on: Day
    placements: int = Field(description="placements that are for this term")

    @classmethod
    def of(cls, term: TermRow) -> "Term":
        """Return the answer for a term, annotated with ``n_placements``."""
        return cls(
            id=term.pk,
            name=term.name,
            code=term.code,
            starts_on=term.starts_on,
            ends_on=term.ends_on,
            placements=getattr(term, "n_placements", 0),
        )


class NewTerm(Body):
    """A term to add, or the new values of a term."""

    name: str = Field(max_length=MAX_TERM_NAME)
    code: str = Field("", max_length=MAX_TERM_CODE)
    starts_on: Day
    ends_on: Day


class ChosenTerm(Body):
    """The term that a placement is for; null for no term."""

    term: RowNumber | None


class NewDates(Body):
    """The days of a student's bed; null is the day of the term."""

    student: StudentId
    arrives_on: Day | None = None
    leaves_on: Day | None = None
    version: RowNumber = Field(description="the version of the placement that was looked at")


class NeedInWords(Answer):
    """A need in the words of students, and the rooms that meet it."""

    need: str
    students: int = Field(description="students of the cohort with this need")
    rooms: int = Field(description="open rooms that meet it")
    is_named: bool = Field(description="whether rooms say it in the same words")
    meaning: int | None = Field(description="the id of what staff said; null if they said nothing")
    offers: list[str] | None = Field(description="what such rooms say instead, as staff said")
    guess: list[str] = Field(description="offers of rooms whose words are among those of the need")

    @classmethod
    def of(cls, one: NeedWords) -> "NeedInWords":
        """Return the answer for a need."""
        return cls(
            need=one.need,
            students=one.n_students,
            rooms=one.n_rooms,
            is_named=one.is_named,
            meaning=one.meaning.pk if one.meaning else None,
            offers=list(one.meaning.offers) if one.meaning else None,
            guess=list(one.guess),
        )


class CohortNeeds(Answer):
    """The needs of a cohort, those without a room first, and everything that rooms offer."""

    needs: list[NeedInWords]
    offers: list[str]


class NewMeaning(Body):
    """Features of the rooms that meet a need; an empty list means that no room meets it."""

    need: str = Field(min_length=1, max_length=MAX_NEED)
    offers: list[Annotated[str, Field(max_length=MAX_NEED)]] = Field(max_length=1000)


class Meaning(Answer):
    """The features that meet a need, as staff chose them, and how many rooms meet it now."""

    id: int
    need: str
    offers: list[str]
    rooms: int


class RoomChoiceRound(Answer):
    """A round in which students choose rooms, with the counts of its groups."""

    id: int
    name: str
    state: RoundState
    opens_at: Time
    closes_at: Time
    minutes: int = Field(description="length of a slot")
    stays_open: bool = Field(description="whether slots end only as the round closes")
    students: int
    groups: int
    chosen: int = Field(description="students whose choice is in force")
    counts: dict[str, int] = Field(
        description="groups that chose, were placed by staff, have their slot now, wait, missed it"
    )

    @classmethod
    def of_board(cls, found: ChoiceRound, board: Board) -> "RoomChoiceRound":
        """Return the answer for a round and its groups as they stand now."""
        return cls(
            id=found.pk,
            name=found.name,
            state=RoundState(found.state),
            opens_at=found.opens_at,
            closes_at=found.closes_at,
            minutes=found.minutes,
            stays_open=found.stays_open,
            students=board.n_students,
            groups=board.n_groups,
            chosen=board.n_chosen,
            counts=board.counts,
        )


class ChoiceRounds(Answer):
    """The rounds of a placement, first to open first."""

    rounds: list[RoomChoiceRound]
