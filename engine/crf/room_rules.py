"""What staff demand of, and wish for, a placement into rooms.

Hard rules hold or there is no placement. Soft ones (wishes, preferences, ``alike``, a price per
move) add to the score of a placement, in nats, what staff say they are worth.
"""

from dataclasses import dataclass

from engine.crf.rules import Pair

ANYBODY = frozenset({"", "any", "anyone", "all", "mixed", "open", "-"})


@dataclass(frozen=True, slots=True)
class Designation:
    """Rooms with a value in a column take only students who have the same in theirs.

    Several values stand with ``|`` between them; a blank, "any", "all" or "mixed" takes everybody.

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


@dataclass(frozen=True, slots=True)
class Need:
    """A student must have a room with this value in a column: an attribute, capacity or room.

    Parameters
    ----------
    student : int, index in the survey.
    column : str, an attribute of the rooms, or "capacity" or "room".
    value : str, what the room must have there; "yes", "true", "x" and "1" are alike.

    Examples
    --------
    >>> RoomRules(needs=(Need(4, "accessible"),)).needs[0].value
    'yes'
    """

    student: int
    column: str
    value: str = "yes"


@dataclass(frozen=True, slots=True)
class Request:
    """A student wants to live with another.

    ``is_must`` makes it a rule; otherwise honouring it adds ``weight`` (nats).

    Parameters
    ----------
    student : int, index in the survey.
    wants : int, index of the other.
    is_must : bool, whether it is a rule rather than a wish.
    weight : float, nats that honouring a wish adds.

    Examples
    --------
    >>> Request(2, 4, is_must=True).is_must
    True
    """

    student: int
    wants: int
    is_must: bool = False
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Preference:
    """A student's ranked values of a room column, the first the most wanted.

    Of K values the k-th adds ``weight`` (K - k + 1) / K nats, any other nothing.

    Parameters
    ----------
    student : int, index in the survey.
    column : str, an attribute of the rooms.
    values : tuple of str, length K, the most wanted first.
    weight : float, nats that the first value adds.

    Examples
    --------
    >>> Preference(0, "hall", ("Alder", "Birch"), weight=0.5).values[0]
    'Alder'
    """

    student: int
    column: str
    values: tuple[str, ...]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class RoomRules:
    """Rules over the students of one survey and the rooms of one building list, by index.

    Parameters
    ----------
    locks : tuple of tuples of students who share a room; locks that overlap join.
    forbids : tuple of pairs who never share one.
    same : tuple of survey columns in which roommates agree; a blank is a value of its own.
    single : tuple of students who live alone.
    assigned : tuple of (student, room), locks of people to rooms.
    designations : tuple of Designation
    needs : tuple of Need
    requests : tuple of Request
    preferences : tuple of Preference
    closed : tuple of rooms that are offline.
    kept : tuple of rooms for nobody but the students assigned to them.
    alike : tuple of (survey column, weight in nats)
        Each pair of roommates who agree adds the weight times 1 / (people in the room - 1): above
        zero keeps together, below zero spreads.
    must_fill : bool, whether a room that is used has no free bed.

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
    must_fill: bool = False
