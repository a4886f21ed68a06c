"""Rows of pairs: they follow where students live, and undo puts them back exactly.

A change is {"before": rows of pairs as they were, "versions": {key: version afterwards}}; a key
whose version is None was deleted, and one without a row did not exist before.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import Count, Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.models import Student
from webapp.database.rows import create_rows
from webapp.housing.errors import PlacesChangedError
from webapp.housing.models import APART, HELD_STATES, PairState, PlacedPair, Placement
from webapp.housing.pairs.numbers import PairNumbers
from webapp.translation.lazy import gettext_lazy

PairChange = dict[str, Any]
BATCH = 400
MANY = 10_000  # SQLite takes at most 32,766 values in one query
_FIGURES = ["score", "probability", "multiple", "doubt", "allowed", "doubt_share", "chips", "weak"]
_FIELDS = [
    "pk", "room_id", "first_id", "second_id", "first_number", "second_number", *_FIGURES,
    "state", "version", "decided_by",
]  # fmt: skip
COMPUTED_AGAIN = gettext_lazy("The pairs were computed again meanwhile. Nothing was changed.")


def pair_row(pair: PlacedPair) -> dict[str, Any]:
    """Return the fields that undo needs to restore a pair."""
    row = {name: getattr(pair, name) for name in _FIELDS}
    row["decided_at"] = pair.decided_at.isoformat() if pair.decided_at else None
    return row


def pair_of_row(placement: Placement, row: Mapping[str, Any]) -> PlacedPair:
    """Return the pair of a row, not saved yet."""
    values = {**row}
    if isinstance(values.get("decided_at"), str):
        values["decided_at"] = parse_datetime(values["decided_at"])
    return PlacedPair(placement=placement, **values)


def no_change() -> PairChange:
    """Return the change of an act that leaves all pairs as they are."""
    return {"before": [], "versions": {}}


def change_of(before: Iterable[dict[str, Any]], pairs: Iterable[PlacedPair]) -> PairChange:
    """Return the change from some rows to pairs of the same keys."""
    return {"before": list(before), "versions": {str(pair.pk): pair.version for pair in pairs}}


def changed_sentence(pair: PlacedPair) -> str:
    """Return who changed a pair, and into what, for a decision that names an older version."""
    fresh = PlacedPair.objects.filter(pk=pair.pk).first()
    if fresh is None:
        return _("%(pair)s is no longer a pair here. Nothing was changed.") % {"pair": pair.label}
    who = fresh.decided_by or _("somebody else")
    return _("%(pair)s was changed to “%(state)s” by %(who)s meanwhile. Nothing was changed.") % {
        "pair": fresh.label,
        "state": PairState(fresh.state).label.lower(),
        "who": who,
    }


def replace_pairs(
    placement: Placement, rows: Mapping[int, dict[str, Any]], versions: Mapping[int, int]
) -> list[PlacedPair]:
    """Replace the contents of pairs whose versions are as given; the placement must be locked.

    The rows are deleted and created again under their keys: updated one by one, two swapped
    pairs would break the rule that a student is in one pair only.

    Raises PlacesChangedError naming a pair that has another version.
    """
    present = {pair.pk: pair for pair in placement.pairs.filter(pk__in=rows)}
    for key, row in rows.items():
        if key not in present:
            raise PlacesChangedError(COMPUTED_AGAIN)
        if present[key].version != versions[key]:
            raise PlacesChangedError(changed_sentence(present[key]))
        row["version"] = versions[key] + 1
    placement.pairs.filter(pk__in=rows).delete()
    return _create(pair_of_row(placement, row) for row in rows.values())


def contradiction_of_pairs(change: PairChange, versions: Mapping[int, int]) -> str:
    """Return why a change cannot be taken back, or ""; ``versions`` are those of all pairs now."""
    before = {row["pk"]: row for row in change["before"]}
    for key, version in change["versions"].items():
        if versions.get(int(key)) != version:
            row = before.get(int(key))
            label = f"S-{row['first_number']} + S-{row['second_number']}" if row else _("A pair")
            return _("%(label)s was changed since.") % {"label": label}
    return ""


def put_back(placement: Placement, change: PairChange) -> PairChange:
    """Take a change of pairs back; return the change that this is."""
    keys = {int(key) for key in change["versions"]}
    present = {pair.pk: pair for pair in placement.pairs.filter(pk__in=keys)}
    old = [pair_row(pair) for pair in present.values()]
    placement.pairs.filter(pk__in=keys).delete()
    rows = []
    for row in change["before"]:
        version = change["versions"][str(row["pk"])] or row["version"]
        rows.append(pair_of_row(placement, {**row, "version": version + 1}))
    made = {pair.pk: pair.version for pair in _create(rows)}
    return {"before": old, "versions": {str(key): made.get(key) for key in sorted(keys)}}


def _create(pairs: Iterable[PlacedPair]) -> list[PlacedPair]:
    return PlacedPair.objects.bulk_create(list(pairs), batch_size=BATCH)


def note_counts(placement: Placement) -> None:
    """Set the counts of pairs that lists show of a placement; the caller saves it."""
    is_open = Q(state=PairState.OPEN)
    counts = placement.pairs.aggregate(pairs=Count("pk"), open=Count("pk", filter=is_open))
    placement.n_pairs, placement.n_open = counts["pairs"], counts["open"]


def follow(
    user: User | None,
    placement: Placement,
    numbers: Collection[int] | None,
    rooms: Collection[int],
    known: Sequence[Mapping[str, Any]] = (),
) -> PairChange:
    """Make the rows of pairs agree with where students live, after an act; return the change.

    Parameters
    ----------
    numbers, rooms : students and rooms that the act concerned; None for all.
    known : rows of pairs whose figures were computed already, as a version keeps them.
    """
    return _Following(user, placement, known).follow(numbers, rooms)


class _Member(NamedTuple):
    """A student in a room."""

    number: int
    student_id: int
    is_locked: bool


class _Following:
    """Comparison of the rows of pairs with the rooms of a placement."""

    def __init__(
        self, user: User | None, placement: Placement, known: Sequence[Mapping[str, Any]]
    ) -> None:
        self._user, self._placement = user, placement
        self._known = {(row["first_number"], row["second_number"]): row for row in known}
        self._numbers = PairNumbers(placement)
        self._by_hand = not known

    def follow(self, numbers: Collection[int] | None, rooms: Collection[int]) -> PairChange:
        members = self._members(numbers, rooms)
        old = self._rows(numbers, rooms)
        accepted = dict(
            self._placement.accepted_rooms.filter(room__in=members).values_list(
                "room_id", "members"
            )
        )
        by_room = {pair.room_id: pair for pair in old}
        by_students = {(pair.first_number, pair.second_number): pair for pair in old}
        made: list[PlacedPair] = []
        for room, places in members.items():
            if len(places) != 2:
                continue
            first, second = sorted(places)
            before = by_students.get((first.number, second.number))
            pair = self._pair(room, first, second, before)
            is_accepted = accepted.get(room) == [first.number, second.number]
            self._set_state(pair, before, first.is_locked and second.is_locked, is_accepted)
            slot = by_room.get(room)
            if slot is not None:
                pair.pk, pair.version = slot.pk, slot.version
            made.append(pair)
        return self._write(old, made)

    def _members(
        self, numbers: Collection[int] | None, rooms: Collection[int]
    ) -> dict[int, list[_Member]]:
        places = self._placement.places.with_bed()
        if numbers is not None:
            places = places.filter(room__in=rooms)
        found: dict[int, list[_Member]] = {}
        # Values instead of objects take less time, in which nobody else can write on SQLite.
        rows = places.values_list("room_id", "number", "student_id", "is_locked")
        for room, number, student, is_locked in rows:
            found.setdefault(room or 0, []).append(_Member(number, student, is_locked))
        return found

    def _rows(self, numbers: Collection[int] | None, rooms: Collection[int]) -> list[PlacedPair]:
        pairs = self._placement.pairs.all()
        if numbers is not None:
            concerned = Q(first_number__in=numbers) | Q(second_number__in=numbers)
            pairs = pairs.filter(concerned | Q(room__in=rooms))
        return list(pairs)

    def _pair(
        self, room: int, first: _Member, second: _Member, before: PlacedPair | None
    ) -> PlacedPair:
        """Return the pair of a room with its figures: kept, of the version, or worked out now."""
        held = before is not None and before.state in HELD_STATES
        known = self._known.get((first.number, second.number))
        figures: Mapping[str, Any]
        if before is not None and (held or known is None):
            figures = {name: getattr(before, name) for name in _FIGURES}
        elif known is not None:
            figures = {name: known[name] for name in _FIGURES}
        else:
            figures = self._numbers.pair_values(first.number, second.number)
        return PlacedPair(
            placement=self._placement,
            room_id=room,
            first_id=first.student_id,
            second_id=second.student_id,
            first_number=first.number,
            second_number=second.number,
            **figures,
        )

    def _set_state(
        self, pair: PlacedPair, before: PlacedPair | None, is_locked: bool, is_accepted: bool
    ) -> None:
        known = self._known.get((pair.first_number, pair.second_number), {})
        past = before.state if before is not None else known.get("state")
        if past is None and self._by_hand:
            past = PairState.SWAPPED
        if is_locked:
            state = PairState.LOCKED
        elif is_accepted:
            state = PairState.ACCEPTED
        else:
            state = PairState.SWAPPED if past == PairState.SWAPPED else PairState.OPEN
        pair.state = state
        if state == PairState.OPEN:
            return
        if before is not None and before.state == state:
            pair.decided_by, pair.decided_at = before.decided_by, before.decided_at
        elif known.get("state") == state:
            pair.decided_by = known["decided_by"]
            pair.decided_at = parse_datetime(known["decided_at"]) if known["decided_at"] else None
        else:
            pair.decided_by = self._user.get_username() if self._user else ""
            pair.decided_at = timezone.now()

    def _write(self, old: Sequence[PlacedPair], made: Sequence[PlacedPair]) -> PairChange:
        """Write new rows where they differ; rows of rejected pairs stay while both are apart."""
        paired = {n for pair in made for n in (pair.first_number, pair.second_number)}
        taken = {pair.room_id for pair in made}
        apart = [pair for pair in old if pair.state in APART]
        those = {n for pair in apart for n in (pair.first_number, pair.second_number)}
        left = self._placement.places.filter(has_left=True, number__in=those)
        away = paired | set(left.values_list("number", flat=True))
        before = {pair.pk: pair for pair in old}
        same = {pair.pk for pair in made if pair.pk and _equal(before[pair.pk], pair)}
        gone = [
            pair
            for pair in old
            if pair.pk not in same
            and not (
                pair.state in APART
                and pair.room_id not in taken
                and not {pair.first_number, pair.second_number} & away
            )
        ]
        new = [pair for pair in made if pair.pk not in same]
        if not gone and not new:
            return no_change()
        rows = [pair_row(pair) for pair in gone]
        PlacedPair.objects.filter(pk__in=[pair.pk for pair in gone]).delete()
        for pair in new:
            pair.version = pair.version + 1 if pair.pk else 1
        written = _create_keyed(self._placement, new)
        keys = sorted({*written, *(pair.pk for pair in gone)})
        return {"before": rows, "versions": {str(key): written.get(key) for key in keys}}


def _create_keyed(placement: Placement, pairs: Sequence[PlacedPair]) -> dict[int, int]:
    """Create pairs, some with the keys they had; return the version of each by its key."""
    versions = {pair.pk: pair.version for pair in _create(pair for pair in pairs if pair.pk)}
    fresh = [pair for pair in pairs if not pair.pk]
    create_rows(fresh)
    for k in range(0, len(fresh), MANY):
        numbers = [pair.first_number for pair in fresh[k : k + MANY]]
        made = placement.pairs.filter(first_number__in=numbers)
        versions |= dict(made.values_list("pk", "version"))
    return versions


def _equal(one: PlacedPair, other: PlacedPair) -> bool:
    names = ["room_id", "first_id", "second_id", "state", *_FIGURES]
    return all(getattr(one, name) == getattr(other, name) for name in names)


def student_keys(placement: Placement, numbers: Collection[int]) -> dict[int, int]:
    """Return the keys of some students of the cohort by their numbers."""
    students = Student.objects.filter(cohort_id=placement.cohort_id, number__in=numbers)
    return dict(students.values_list("number", "pk"))
