"""Shapes of buildings, requests, placements, decisions and rosters; students by id on screen."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypedDict

from pydantic import Field

from webapp.api.shapes.base import (
    Answer,
    Body,
    Day,
    Key,
    OneOf,
    Paging,
    RowNumber,
    Seed,
    SentKey,
    Time,
)
from webapp.cohorts.models import Cohort
from webapp.housing.exports import LAYOUTS
from webapp.housing.models import (
    MAX_BEDS,
    Place,
    RoommateRequest,
    RoomState,
)
from webapp.housing.models import Placement as PlacementRow
from webapp.housing.models import Room as RoomRow
from webapp.housing.rules import DEFAULT_PRICE, DEFAULT_SUITE, DEFAULT_WISH, PlacementRules
from webapp.housing.selectors.needs import uncounted_needs
from webapp.housing.services.placements import left_out_of

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    NumberedPlacement: TypeAlias = WithAnnotations[PlacementRow, "Numbers"]

State = Annotated[str, OneOf(RoomState.values)]
Count = Literal["must", "wish", "no"]
SEED = "0 to 2,147,483,647; the same input and seed give the same rooms; chosen when left out"
StudentId = Annotated[str, Field(description="an id on screen, such as S-1042", max_length=20)]


class Numbers(TypedDict):
    """Numbers of versions that the query of a placement adds to it."""

    current_number: int | None
    undecided_run: int | None
    last_run: int | None


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
    suite: str = Field(
        description="rooms of one hall with the same suite share a door or a bathroom; blank: none"
    )
    beds: int = Field(validation_alias="capacity")
    max_beds: int = Field(
        validation_alias="max_capacity", description="beds with extra beds, which are used last"
    )
    designation: str = Field(
        description="who may live there, such as F or Gender=F; Class year=1|2; blank: anybody"
    )
    meets: list[str] = Field(description="needs that it meets")
    state: State
    note: str


class NewRoom(Body):
    """A room to add, or the new values of a room."""

    hall: str = Field(max_length=80)
    name: str = Field(max_length=40)
    beds: int = Field(description=f"1 to {MAX_BEDS}")
    floor: str = Field("", max_length=20)
    max_beds: int | None = Field(None, description="beds with extra beds; none without it")
    designation: str = Field("", max_length=200)
    meets: list[Annotated[str, Field(max_length=80)]] = Field(default=[], max_length=20)
    state: State = str(RoomState.OPEN)
    note: str = Field("", max_length=120)
    suite: str | None = Field(None, max_length=40, description="stays as it is if left out")

    def values(self) -> dict[str, Any]:
        """Return the values as the service takes them."""
        suite = {} if self.suite is None else {"suite": " ".join(self.suite.split())}
        return suite | {
            "hall": " ".join(self.hall.split()),
            "floor": " ".join(self.floor.split()),
            "name": " ".join(self.name.split()),
            "capacity": self.beds,
            "max_capacity": self.max_beds,
            "designation": self.designation.strip(),
            "meets": [need.strip() for need in self.meets if need.strip()],
            "state": self.state,
            "note": self.note.strip(),
        }


class RoomQuery(Paging):
    """Query for the rooms of a building list."""

    hall: str = Field("", description="of this hall only")
    q: str = Field("", description="whose name or hall holds these words")


class NewName(Body):
    """A new name."""

    name: str = Field(max_length=120)


class RoommateWish(Answer):
    """A roommate request."""

    id: int
    student: str
    wants: str | None = Field(description="the student who is meant; null while unknown")
    written: str = Field(description="as it was written, until it is matched")
    source: str
    is_left_out: bool

    @classmethod
    def of(cls, request: RoommateRequest) -> "RoommateWish":
        """Return the answer for a request."""
        return cls(
            id=request.pk,
            student=request.student.label,
            wants=request.target.label if request.target else None,
            written=request.written,
            source=request.source,
            is_left_out=request.is_ignored,
        )


class NewAnswer(Body):
    """The student that a request means; blank leaves the request out."""

    student: str = Field("", max_length=200)


class NewCuts(Body):
    """Requests to leave out, as pairs of students, in both directions."""

    pairs: list[Annotated[list[StudentId], Field(min_length=2, max_length=2)]] = Field(
        min_length=1, max_length=1000
    )


class Rules(Body):
    """Conditions that hold in every room, and preferences to count."""

    model_config = Body.model_config | {"extra": "forbid", "from_attributes": True}

    designation: str = Field("", description="column that a room's designation is a value of")
    same: list[str] = Field(default=[], description="columns in which roommates agree")
    needs: list[str] | None = Field(
        default=None,
        description="columns that say what a student needs; every one of the cohort's if left out",
    )
    mutual: Count = "must"
    one_sided: Count = "wish"
    wish: float = Field(DEFAULT_WISH, description="what an honoured wish is worth, score")
    preference: float = Field(0.0, description="what the first choice is worth, score")
    price: float = Field(DEFAULT_PRICE, description="what a move costs, score")
    suite: float = Field(
        DEFAULT_SUITE, description="what suite mates count, as a share of roommates; 0: not at all"
    )
    suite_same: bool = Field(
        True, description="whether all people of a suite agree in the columns of same"
    )
    order: list[tuple[str, int]] = Field(
        default=[],
        max_length=500,
        description="order in which rooms fill: a hall, or hall and floor joined by |, and its "
        "number; 1 fills first, others last",
    )

    @classmethod
    def of_rules(cls, rules: PlacementRules) -> "Rules":
        """Return the answer for the rules of a placement."""
        values = rules.to_json()
        del values["singles"]  # of pairs, which have rules of their own
        lists = {"same": rules.same, "needs": rules.needs, "order": rules.order}
        return cls(**{**values, **{name: list(value) for name, value in lists.items()}})

    def to_rules(self, cohort: Cohort) -> PlacementRules:
        """Return the rules for the services, with the cohort's needs if none are given."""
        needs = cohort.needs if self.needs is None else self.needs
        values = self.model_dump()
        lists = {"same": self.same, "needs": needs, "order": self.order}
        return PlacementRules(**{**values, **{k: tuple(value) for k, value in lists.items()}})


class Clash(Answer):
    """Rules that contradict each other."""

    sentence: str
    requests: list[list[str]]
    locks: list[str] = Field(description="students who are locked into rooms")
    nevers: list[list[str]] = Field(description="pairs who are never to share a room")

    @classmethod
    def of(cls, clash: dict[str, Any]) -> "Clash":
        """Return the answer for contradicting rules as a job stored them."""
        return cls(
            sentence=clash["sentence"],
            requests=[[f"S-{a}", f"S-{b}"] for a, b in clash["requests"]],
            locks=[f"S-{number}" for number in clash.get("locks", ())],
            nevers=[[f"S-{a}", f"S-{b}"] for a, b in clash.get("nevers", ())],
        )


class UncountedNeeds(Answer):
    """Columns of needs that the rooms do not count, with the number of students who filled them."""

    columns: list[str]
    students: int

    @classmethod
    def of(cls, row: PlacementRow) -> "UncountedNeeds | None":
        """Return the answer for the needs that a placement leaves out."""
        found = uncounted_needs(row)
        return cls(columns=list(found.columns), students=found.students) if found else None


class Placement(Answer):
    """A cohort in the rooms of a building list, or in pairs."""

    id: Key
    name: str
    cohort: Key
    is_pairs: bool = Field(description="without a building list: see also /proposals")
    buildings: Key
    model: Key
    rules: Rules
    version: int = Field(description="grows with every act; decisions name the one they saw")
    revision: int = Field(description="how many computed versions were taken into force")
    current_version: int | None = Field(description="number of the version in force")
    waiting_version: int | None = Field(
        description="number of a computed version that nobody has decided about; see /versions"
    )
    is_computed: bool
    is_published: bool
    published_at: Time | None
    best_at: Time | None = Field(description="when the certificate was made")
    changes: int = Field(description="moves by hand since then")
    students: int
    placed: int
    figures: dict[str, Any] = Field(
        description="score, bounds and gap of the optimisation, its seed and is_repeatable"
    )
    left_out: list[Clash] = Field(
        description="requests that other rules contradict: everybody else was placed without them"
    )
    clashes: list[Clash]
    uncounted_needs: UncountedNeeds | None = Field(
        description="needs that the rooms do not count; count_needs at /compute counts them"
    )
    job: Key | None
    created_at: Time

    @classmethod
    def of(cls, row: "NumberedPlacement") -> "Placement":
        """Return the answer for a placement with its ``current_number`` and last runs."""
        figures = {key: value for key, value in row.figures.items() if key != "left_out"}
        return cls(
            id=row.pk,
            name=row.name,
            cohort=row.cohort_id,
            is_pairs=row.is_pairs,
            buildings=row.buildings_id,
            model=row.model_id,
            rules=Rules.of_rules(PlacementRules.from_json(row.rules)),
            version=row.version,
            revision=row.revision,
            current_version=row.current_number,
            waiting_version=row.undecided_run if row.undecided_run == row.last_run else None,
            is_computed=row.is_computed,
            is_published=row.is_published,
            published_at=row.published_at,
            best_at=row.best_at,
            changes=row.changes,
            students=row.n_people,
            placed=row.n_placed,
            figures=figures,
            left_out=[Clash.of(clash) for clash in left_out_of(row)],
            clashes=[Clash.of(clash) for clash in row.clashes],
            uncounted_needs=UncountedNeeds.of(row),
            job=row.job_id or None,
            created_at=row.created_at,
        )


class NewPlacement(Body):
    """A placement to compute; omitted rules are guessed from the cohort's columns."""

    cohort: SentKey
    buildings: SentKey
    model: SentKey
    name: str = Field("", max_length=120)
    rules: Rules | None = None
    seed: Seed | None = Field(None, description=SEED)


class NewRun(Body):
    """Time limit of a run."""

    seconds: float | None = Field(None, description="CPU time; 120 by default")
    seed: Seed | None = Field(None, description=SEED)
    count_needs: bool = Field(False, description="count every column of needs of the cohort")


class SeenPeople(Body):
    """The number of published beds that was shown."""

    people: int = Field(ge=0, description="students with a published bed, as placed says")


class Confirmed(Body):
    """The number of published beds that an undo changes, if any."""

    confirmed: int = Field(0, ge=0, description="students whose published bed changes")


class SeenVersion(Body):
    """The version of the placement that was shown."""

    version: RowNumber


class NewSolution(Body):
    """Clash to solve (null: all), by leaving out requests, releasing locks, or allowing pairs."""

    clash: int | None = Field(None, ge=0, lt=1000)
    leave: Literal["requests", "locks", "nevers"] = "requests"


class StudentPlace(Answer):
    """The room and bed of a student."""

    student: str = Field(description="the id on screen")
    room: int | None = Field(description="the room's id; null without one")
    hall: str | None
    suite: str | None = Field(description="of the room; blank for a room in no suite")
    name: str | None
    bed: int | None
    score: float | None = Field(description="mean of the pairs with the roommates; null alone")
    is_locked: bool
    has_left: bool
    arrives_on: Day | None = Field(description="first day of the bed; null: that of the term")
    leaves_on: Day | None = Field(description="last day of the bed; null: that of the term")
    full_name: str | None = Field(None, description="null for those who do not see names")

    @classmethod
    def of(cls, place: Place) -> "StudentPlace":
        """Return the answer for a place with its room."""
        room: RoomRow | None = place.room
        return cls(
            student=place.label,
            room=room.pk if room else None,
            hall=room.hall if room else None,
            suite=room.suite if room else None,
            name=room.name if room else None,
            bed=place.bed,
            score=place.score,
            is_locked=place.is_locked,
            has_left=place.has_left,
            arrives_on=place.arrives_on,
            leaves_on=place.leaves_on,
            full_name=None,
        )


class PlaceQuery(Paging):
    """Query for the students of a placement."""

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
    """New position of a student on the waiting list."""

    student: StudentId
    is_first: bool = Field(description="first on the waiting list, or last")


class RoomDecided(Answer):
    """Result of a decision: ``event`` undoes it; a ``draft`` of late changes needs confirmation."""

    sentence: str
    event: int | None
    draft: int | None
    version: int


class RosterQuery(Paging):
    """Query for the contents of a roster."""

    by: str = Field("student", description="student or room")
    columns: str = Field("", description="keys of columns, parted by commas; see the roster page")
    shape: str = Field("", description="a stored layout: " + ", ".join(LAYOUTS))
    ids: Literal["exact", "safe"] = Field(
        "safe",
        description="exact leaves halls and rooms of a CSV as they are, also where they look like "
        "formulas; what students typed is always marked",
    )
    names: bool = Field(
        False,
        description="a column with the name after each student of a roster by room; refused for "
        "people who do not see names",
    )
