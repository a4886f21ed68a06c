"""Buildings, requests, placements, decisions about rooms, and rosters. Students by id on screen."""

from typing import Annotated, Any, Literal

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, Key, Paging, RowNumber, SentKey, Time
from webapp.housing.models import (
    MAX_BEDS,
    Place,
    RoommateRequest,
    RoomState,
)
from webapp.housing.models import Placement as PlacementRow
from webapp.housing.models import Room as RoomRow
from webapp.housing.rules import DEFAULT_PRICE, DEFAULT_WISH, PlacementRules

State = Literal[tuple(RoomState.values)]
Count = Literal["must", "wish", "no"]
StudentId = Annotated[str, Field(description="an id on screen, such as S-1042", max_length=20)]


class Buildings(Answer):
    """A list of halls, rooms and beds."""

    id: Key = Field(validation_alias="pk")
    name: str
    rooms: int = Field(validation_alias="n_rooms")
    beds: int = Field(validation_alias="n_beds")
    created_at: Time
    updated_at: Time


class Room(Answer):
    """A room of a building list."""

    id: int = Field(validation_alias="pk")
    hall: str
    floor: str
    name: str
    beds: int = Field(validation_alias="capacity")
    designation: str = Field(description="who may live there; blank: anybody")
    meets: list[str] = Field(description="needs that it meets")
    state: State
    note: str


class NewRoom(Body):
    """A room to be added, or what a room is to be."""

    hall: str = Field(max_length=80)
    name: str = Field(max_length=40)
    beds: int = Field(description=f"1 to {MAX_BEDS}")
    floor: str = Field("", max_length=20)
    designation: str = Field("", max_length=80)
    meets: list[Annotated[str, Field(max_length=80)]] = Field(default=[], max_length=20)
    state: State = str(RoomState.OPEN)
    note: str = Field("", max_length=120)

    def values(self) -> dict[str, Any]:
        """Return what the service takes."""
        return {
            "hall": " ".join(self.hall.split()),
            "floor": " ".join(self.floor.split()),
            "name": " ".join(self.name.split()),
            "capacity": self.beds,
            "designation": self.designation.strip(),
            "meets": [need.strip() for need in self.meets if need.strip()],
            "state": self.state,
            "note": self.note.strip(),
        }


class RoomQuery(Paging):
    """Which rooms of a list."""

    hall: str = Field("", description="of this hall only")
    q: str = Field("", description="whose name or hall holds these words")


class NewName(Body):
    """Another name."""

    name: str = Field(max_length=120)


class RoommateWish(Answer):
    """Who asked to live with whom."""

    id: int
    student: str
    wants: str | None = Field(description="the student who is meant; null while unknown")
    written: str = Field(description="as it was written, until it is matched")
    source: str
    is_left_out: bool

    @classmethod
    def of(cls, request: RoommateRequest) -> "RoommateWish":
        """Read a request."""
        return cls(
            id=request.pk,
            student=request.student.label,
            wants=request.target.label if request.target else None,
            written=request.written,
            source=request.source,
            is_left_out=request.is_ignored,
        )


class NewAnswer(Body):
    """Whom a request means; blank leaves it out."""

    student: str = Field("", max_length=200)


class NewCuts(Body):
    """Requests to be left out, as pairs of students, both ways."""

    pairs: list[Annotated[list[StudentId], Field(min_length=2, max_length=2)]] = Field(
        min_length=1, max_length=1000
    )


class Rules(Body):
    """What must hold in every room, and what is counted as a wish."""

    model_config = Body.model_config | {"extra": "forbid", "from_attributes": True}

    designation: str = Field("", description="column that a room's designation is a value of")
    same: list[str] = Field(default=[], description="columns in which roommates agree")
    needs: list[str] = Field(default=[], description="columns that say what a student needs")
    mutual: Count = "must"
    one_sided: Count = "wish"
    wish: float = Field(DEFAULT_WISH, description="what an honoured wish is worth, score")
    preference: float = Field(0.0, description="what the first choice is worth, score")
    price: float = Field(DEFAULT_PRICE, description="what a move costs, score")

    @classmethod
    def of_rules(cls, rules: PlacementRules) -> "Rules":
        """Read the rules of a placement."""
        values = rules.to_json()
        return cls(**{**values, "same": list(rules.same), "needs": list(rules.needs)})

    def to_rules(self) -> PlacementRules:
        """Return what the services take."""
        values = self.model_dump()
        return PlacementRules(**{**values, "same": tuple(self.same), "needs": tuple(self.needs)})


class Clash(Answer):
    """Rules that cannot hold together."""

    sentence: str
    requests: list[list[str]]
    locks: list[str] = Field(description="students who are locked into rooms")
    nevers: list[list[str]] = Field(description="pairs who are never to share a room")


class Placement(Answer):
    """A cohort in the rooms of a building list."""

    id: Key
    name: str
    cohort: Key
    buildings: Key
    model: Key
    rules: Rules
    version: int = Field(description="grows with every change; decisions name the one they saw")
    revision: int = Field(description="how often its rooms were worked out")
    is_computed: bool
    is_published: bool
    published_at: Time | None
    best_at: Time | None = Field(description="when the certificate was made")
    changes: int = Field(description="moves by hand since then")
    students: int
    placed: int
    figures: dict[str, Any] = Field(description="score, bounds and gap of the optimisation")
    clashes: list[Clash]
    job: Key | None
    created_at: Time

    @classmethod
    def of(cls, row: PlacementRow) -> "Placement":
        """Read a placement that knows ``n_people`` and ``n_placed``."""
        clashes = [
            Clash(
                sentence=clash["sentence"],
                requests=[[f"S-{a}", f"S-{b}"] for a, b in clash["requests"]],
                locks=[f"S-{number}" for number in clash.get("locks", ())],
                nevers=[[f"S-{a}", f"S-{b}"] for a, b in clash.get("nevers", ())],
            )
            for clash in row.clashes
        ]
        return cls(
            id=row.pk,
            name=row.name,
            cohort=row.cohort_id,
            buildings=row.buildings_id,
            model=row.model_id,
            rules=Rules.of_rules(PlacementRules.from_json(row.rules)),
            version=row.version,
            revision=row.revision,
            is_computed=row.is_computed,
            is_published=row.is_published,
            published_at=row.published_at,
            best_at=row.best_at,
            changes=row.changes,
            students=row.n_people,
            placed=row.n_placed,
            figures=row.figures,
            clashes=clashes,
            job=row.job_id or None,
            created_at=row.created_at,
        )


class NewPlacement(Body):
    """A placement to be worked out; rules are guessed from the cohort's columns when left out."""

    cohort: SentKey
    buildings: SentKey
    model: SentKey
    name: str = Field("", max_length=120)
    rules: Rules | None = None


class SeenVersion(Body):
    """The version of the placement that was looked at."""

    version: RowNumber


class NewSolution(Body):
    """Which clash is solved, null: all; by leaving requests out, releasing, or allowing pairs."""

    clash: int | None = Field(None, ge=0, lt=1000)
    leave: Literal["requests", "locks", "nevers"] = "requests"


class StudentPlace(Answer):
    """Where a student lives."""

    student: str = Field(description="the id on screen")
    room: int | None = Field(description="the room's id; null without one")
    hall: str | None
    name: str | None
    bed: int | None
    score: float | None = Field(description="mean of the pairs with the roommates; null alone")
    is_locked: bool
    has_left: bool

    @classmethod
    def of(cls, place: Place) -> "StudentPlace":
        """Read a place with its room."""
        room: RoomRow | None = place.room
        return cls(
            student=place.label,
            room=room.pk if room else None,
            hall=room.hall if room else None,
            name=room.name if room else None,
            bed=place.bed,
            score=place.score,
            is_locked=place.is_locked,
            has_left=place.has_left,
        )


class PlaceQuery(Paging):
    """Which students of a placement."""

    room: str = Field("", description="of the room with this id only")
    without_room: str = Field("", description="yes: those without a room only")


class NewRoomDecision(Body):
    """A decision about students: lock, release, empty, move, swap, withdraw or return."""

    act: Literal["lock", "release", "empty", "move", "swap", "withdraw", "return"]
    students: list[StudentId] = Field(min_length=1, max_length=1000)
    room: RowNumber | None = Field(None, description="where to, for a move: the room's id")
    version: RowNumber = Field(description="the version of the placement that was looked at")


class NewDecisionOfRooms(Body):
    """A decision about whole rooms: accept, reopen, keep back or open again."""

    act: Literal["accept", "reopen", "keep", "open"]
    rooms: list[RowNumber] = Field(min_length=1, max_length=5000, description="ids of rooms")
    version: RowNumber = Field(description="the version of the placement that was looked at")


class NewTurn(Body):
    """Where somebody without a bed waits."""

    student: StudentId
    is_first: bool = Field(description="first on the waiting list, or last")


class RoomDecided(Answer):
    """What a decision did; ``event`` undoes it."""

    sentence: str
    event: int
    version: int


class RosterQuery(Paging):
    """What a roster holds."""

    by: str = Field("student", description="student or room")
    columns: str = Field("", description="names of columns, parted by commas; see the roster page")
    shape: str = Field("", description="starrez, erezlife, housing-cloud, banner or plain")
    ids: str = Field("exact", description="exact, or safe for a spreadsheet")
