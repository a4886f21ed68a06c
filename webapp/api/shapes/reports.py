"""Shapes of checks of a placement, of its report by hall, and of kept rosters."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from webapp.api.shapes.base import Answer, Body, Key, OneOf, Time
from webapp.housing.exports import COLUMNS, DATES, MAX_COLUMNS, MAX_HEADING, OWN, is_column
from webapp.reports.models import PlacementCheck, RosterShape
from webapp.reports.selectors import HallReport

KEYS = f"one of {', '.join(COLUMNS)}, or {OWN} and the name of a column of the survey"
Dates = Annotated[str, OneOf(DATES)]


def _known_column(key: str) -> str:
    """Return the key of a column; refuse an unknown one."""
    if not is_column(key):
        raise PydanticCustomError("column", f"expected {KEYS}")
    return key


class Check(Answer):
    """Reliability of a placement's figures."""

    placement: Key
    is_ready: bool
    is_stale: bool = Field(description="the placement changed since")
    checked_at: Time | None
    figures: dict[str, Any] = Field(
        description="doubt of pairs, veto curve, means of groups with 95 % intervals, drift by year"
    )
    job: Key | None

    @classmethod
    def of(cls, check: PlacementCheck) -> "Check":
        """Return the answer for a check with its placement."""
        return cls(
            placement=check.placement_id,
            is_ready=bool(check.figures),
            is_stale=bool(check.figures) and check.is_stale,
            checked_at=check.checked_at,
            figures=check.figures,
            job=check.job_id or None,
        )


class Hall(Answer):
    """One hall of the report."""

    hall: str = Field(validation_alias="name")
    rooms: int = Field(validation_alias="n_rooms")
    beds: int = Field(validation_alias="n_beds", description="open beds")
    taken: int = Field(validation_alias="n_taken")
    free: int = Field(validation_alias="n_free")
    closed: int = Field(validation_alias="n_closed", description="beds that are kept or offline")
    mean: float | None = Field(description="mean score of who lives with somebody")
    asked: int | None = Field(
        validation_alias="n_asked", description="people who asked for somebody; null for viewers"
    )
    honoured: int | None = Field(validation_alias="n_honoured", description="null for viewers")


class Report(Answer):
    """Report of a placement by hall."""

    halls: list[Hall]

    @classmethod
    def of(cls, halls: list[HallReport]) -> "Report":
        """Return the answer for the halls."""
        return cls(halls=[Hall.model_validate(hall) for hall in halls])


class RosterColumn(Body):
    """A column of a roster."""

    column: Annotated[str, AfterValidator(_known_column)] = Field(
        max_length=1_000, description=KEYS
    )
    heading: str = Field("", max_length=MAX_HEADING, description="the usual one when blank")


class NewRoster(Body):
    """Named columns of a roster; an existing name is overwritten."""

    name: str = Field(max_length=80)
    columns: Annotated[list[RosterColumn], Field(min_length=1, max_length=MAX_COLUMNS)]
    ids: Literal["exact", "safe"] = Field(
        "safe",
        description="exact leaves halls, rooms and headings of a CSV as they are, also where they "
        "look like formulas; what students typed is always marked",
    )
    dates: Dates = Field(
        "iso", description="how the first and the last day of the term are written"
    )


class KeptColumn(Answer):
    """A column of a kept roster."""

    column: str
    heading: str


class Roster(Answer):
    """A roster that the organisation uses repeatedly."""

    id: Key
    name: str
    columns: list[KeptColumn]
    ids: Literal["exact", "safe"]
    dates: Dates
    updated_at: Time

    @classmethod
    def of(cls, shape: RosterShape) -> "Roster":
        """Return the answer for a kept roster."""
        return cls(
            id=shape.pk,
            name=shape.name,
            columns=[KeptColumn(column=key, heading=heading) for key, heading in shape.columns],
            ids="exact" if shape.is_exact else "safe",
            dates=shape.dates,
            updated_at=shape.updated_at,
        )
