"""Shapes of versions of a placement, and of the changes that a version would make."""

from typing import Any

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, Time
from webapp.housing.models import Placement, PlacementVersion
from webapp.housing.services.fitting import FittedVersion as Fit


class Version(Answer):
    """All students' rooms as one run found them, or as they were before being replaced."""

    number: int
    origin: str = Field(description="run, or saved before another version took over")
    is_current: bool = Field(description="whether it is in force")
    is_waiting: bool = Field(description="computed, and nobody has decided about it yet")
    outcome: dict[str, Any] = Field(description="beds, needs, requests, choices, mean score, moves")
    created_at: Time

    @classmethod
    def of(cls, version: PlacementVersion) -> "Version":
        """Return the answer for a version with its placement."""
        return cls(
            number=version.number,
            origin=version.origin,
            is_current=version.placement.current_id == version.pk,
            is_waiting=version.is_waiting,
            outcome=version.outcome,
            created_at=version.created_at,
        )


class VersionMove(Answer):
    """A student whose room a version would change."""

    student: str
    before: int | None = Field(description="the room of now, its id")
    after: int | None = Field(description="the room then, its id; null: no room")


class RefusedStudent(Answer):
    """A student who cannot have the room that a version gives."""

    student: str
    why: str


class FittedVersion(Answer):
    """Changes that using a version would make now."""

    version: Version
    digest: str = Field(description="send it to use the version as shown")
    moves: list[VersionMove]
    refused: list[RefusedStudent]

    @classmethod
    def of_fit(cls, version: PlacementVersion, fit: Fit, placement: Placement) -> "FittedVersion":
        """Return the answer for the changes that a version would make in a placement."""
        now = dict(placement.places.filter(number__in=fit.seats).values_list("number", "room_id"))
        return cls(
            version=Version.of(version),
            digest=fit.digest,
            moves=[
                VersionMove(student=f"S-{number}", before=now[number], after=seat.room)
                for number, seat in sorted(fit.seats.items())
                if now[number] != seat.room
            ],
            refused=[
                RefusedStudent(student=f"S-{number}", why=why)
                for number, why in sorted(fit.refused.items())
            ],
        )


class SeenDigest(Body):
    """Digest of a version's changes as they were shown."""

    digest: str = Field(max_length=64)
