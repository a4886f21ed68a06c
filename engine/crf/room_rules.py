"""Requirements and wishes of staff for a placement into rooms.

Hard rules hold or there is no placement. Soft rules (wishes, preferences, ``alike``, a price per
move) add their weights, in nats, to the score of a placement.
"""

from dataclasses import dataclass

from engine.core.options import check_flag, check_number, check_text, check_whole
from engine.crf.rules import Pair

WEIGHT = 1.0
"""Nats that a granted request, or a first preference, adds by default."""

ANYBODY = frozenset({"", "any", "anyone", "all", "mixed", "open", "-"})


@dataclass(frozen=True, slots=True)
class Designation:
    """Rule that rooms with a value in a column take only students with the same value in theirs.

    ``|`` separates several values; a blank, "any", "all" or "mixed" takes everybody.

    Parameters
    ----------
    room_column : str, a column of the rooms.
    student_column : str, the column of the survey that is compared with it.

    Examples
    --------
    >>> RoomRules(designations=(Designation("floor", "gender"),)).designations[0].room_column
    'floor'
    """

    room_column: str
    student_column: str

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_text("room_column", self.room_column)
        check_text("student_column", self.student_column)


@dataclass(frozen=True, slots=True)
class Need:
    """Need of a student for a room with a value in a column: an attribute, capacity or room.

    Parameters
    ----------
    student : int, index in the survey.
    column : str, an attribute of the rooms, or "capacity" or "room".
    value : str, required value of the room; "yes", "true", "x" and "1" are equal.

    Examples
    --------
    >>> RoomRules(needs=(Need(4, "accessible"),)).needs[0].value
    'yes'
    """

    student: int
    column: str
    value: str = "yes"

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_whole("student", self.student)
        check_text("column", self.column)
        check_text("value", self.value)


@dataclass(frozen=True, slots=True)
class Request:
    """Request of a student to live with another.

    ``is_must`` makes it a rule; otherwise honouring it adds ``weight`` (nats).

    Parameters
    ----------
    student : int, index in the survey.
    wants : int, index of the other student.
    is_must : bool, whether it is a rule rather than a wish.
    weight : float, nats that a granted wish adds.

    Examples
    --------
    >>> Request(2, 4, is_must=True).is_must
    True
    """

    student: int
    wants: int
    is_must: bool = False
    weight: float = WEIGHT

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_whole("student", self.student)
        check_whole("wants", self.wants)
        check_flag("is_must", self.is_must)
        check_number("weight", self.weight)


@dataclass(frozen=True, slots=True)
class Preference:
    """Preference of a student: ranked values of a room column, the best first.

    The k-th of K values adds ``weight`` (K - k + 1) / K nats, any other value nothing.

    Parameters
    ----------
    student : int, index in the survey.
    column : str, an attribute of the rooms.
    values : tuple of str, length K, the best first.
    weight : float, nats that the first value adds.

    Examples
    --------
    >>> Preference(0, "hall", ("Alder", "Birch"), weight=0.5).values[0]
    'Alder'
    """

    student: int
    column: str
    values: tuple[str, ...]
    weight: float = WEIGHT

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_whole("student", self.student)
        check_text("column", self.column)
        check_number("weight", self.weight)


@dataclass(frozen=True, slots=True)
class RoomRules:
    """Rules over the students of one survey and the rooms of one building list, by index.

    Parameters
    ----------
    locks : tuple of tuples of students who share a room; overlapping locks are joined.
    forbids : tuple of pairs who never share a room.
    same : tuple of survey columns in which roommates agree; a blank is a separate value.
    single : tuple of students who live alone.
    assigned : tuple of (student, room), locks of people to rooms.
    designations : tuple of Designation
    needs : tuple of Need
    requests : tuple of Request
    preferences : tuple of Preference
    closed : tuple of rooms that are offline.
    kept : tuple of rooms held back for the students assigned to them.
    alike : tuple of (survey column, weight in nats)
        Each pair of roommates who agree adds the weight times 1 / (people in the room - 1):
        positive weights keep equal students together, negative weights spread them.
    order : tuple of (room column, value), the order in which rooms fill
        Rooms with the first value fill first; rooms with none of the values come last. The sum of
        the positions of all people is the least one that gives everybody a bed, before any score.
    must_fill : bool, whether a room in use has no free bed. Extra beds are not used then.

    Examples
    --------
    >>> rules = RoomRules(locks=((0, 1),), forbids=((2, 3),), needs=(Need(4, "accessible"),))
    >>> rules.locks, rules.single
    (((0, 1),), ())
    """

    locks: tuple[tuple[int, ...], ...] = ()
    forbids: tuple[Pair, ...] = ()
    same: tuple[str, ...] = ()
    single: tuple[int, ...] = ()
    assigned: tuple[tuple[int, int], ...] = ()
    designations: tuple[Designation, ...] = ()
    needs: tuple[Need, ...] = ()
    requests: tuple[Request, ...] = ()
    preferences: tuple[Preference, ...] = ()
    closed: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    alike: tuple[tuple[str, float], ...] = ()
    order: tuple[tuple[str, str], ...] = ()
    must_fill: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_flag("must_fill", self.must_fill)
