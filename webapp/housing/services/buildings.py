"""Building lists from files and by hand; each act is one transaction with its audit line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.tabular.layout import find_layout
from engine.tabular.rooms import (
    MANY_COLUMNS,
    MOST_LETTERS,
    Column,
    RoomFile,
    guess_roles,
    read_rooms,
)
from engine.tabular.source import Line, Sheet, Source
from engine.tabular.table import Table, build_table
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.cohorts.services.drafts import clean_filename
from webapp.cohorts.wrong_slots import file_move
from webapp.files.quota import check_quota, with_fresh_count
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import (
    MAX_BEDS,
    BuildingDraft,
    BuildingList,
    NeedMeaning,
    Place,
    Room,
    RoomState,
)
from webapp.housing.services.closing import (
    check_no_published_bed,
    closed_words,
    drafts_leave,
    lock_buildings,
    students_to_move_out,
)
from webapp.housing.services.need_meanings import meanings_apply
from webapp.housing.stays import first_free_bed, place_stay
from webapp.tabular.reading import read_table, refusals


@dataclass(frozen=True, slots=True)
class SavedRoom:
    """A saved room, and a sentence on the drafts that lost beds by the change, or ""."""

    room: Room
    note: str


@with_fresh_count
def building_draft_create(
    *, user: User, filename: str, size: int, read: Callable[[], bytes]
) -> BuildingDraft:
    """Read an upload and guess the roles of its columns; it is not a building list yet.

    Raises
    ------
    TableRefusal, QuotaError
        One sentence; nothing was saved.
    """
    return building_draft_of_table(user=user, filename=filename, table=read_table(size, read))


@transaction.atomic
def building_draft_of_table(*, user: User, filename: str, table: Table) -> BuildingDraft:
    """Store a table that was read already as a draft of a building list."""
    draft = BuildingDraft.objects.create(
        organisation=user.own_organisation,
        created_by=user,
        filename=clean_filename(filename),
        read_as=table.description[:60],
        header=list(table.header),
        rows=[list(row) for row in table.rows],
        row_numbers=list(table.row_numbers),
        roles=guess_roles(table.header, table.rows),
    )
    audit(user, "uploaded", draft, rows=table.n_rows, columns=table.n_columns)
    written = sum(len(cell) for row in table.rows for cell in row)
    check_quota(user.organisation_id, written=written)
    return draft


def building_draft_move(user: User, filename: str, source: Source, cohort: Cohort | None) -> str:
    """Store a file that was uploaded elsewhere as a draft; return the address of its preview."""
    with refusals():
        table = build_table(source, find_layout(source))
    made = building_draft_of_table(user=user, filename=filename, table=table)
    return reverse("housing:building-draft", args=[made.pk])


def building_draft_source(draft: BuildingDraft) -> Source:
    """Return the header and the rows of a draft as a file of one sheet."""
    first = min(draft.row_numbers, default=2) - 1
    lines = [Line(max(first, 1), tuple(draft.header))]
    lines += [
        Line(number, tuple(cells))
        for number, cells in zip(draft.row_numbers, draft.rows, strict=True)
    ]
    return Source((Sheet("", tuple(lines)),), "CSV")


@transaction.atomic
def building_draft_to(*, user: User, draft: BuildingDraft, to: str, cohort: Cohort | None) -> str:
    """Import the file of a draft as another kind and discard the draft; return the new address."""
    source = building_draft_source(draft)
    address = file_move(user=user, filename=draft.filename, source=source, to=to, cohort=cohort)
    building_draft_discard(user=user, draft=draft)
    return address


def building_draft_file(draft: BuildingDraft) -> RoomFile:
    """Return the rooms of a draft under its present roles."""
    return read_rooms(draft.header, draft.rows, draft.row_numbers, draft.roles)


@transaction.atomic
def building_draft_assign(*, draft: BuildingDraft, column: int, role: str) -> None:
    """Give a column of a draft a role; the column that had the role before is ignored."""
    if role not in list(Column) or not 0 <= column < len(draft.roles):
        raise HousingError(_("There is no such column or use of a column."))
    draft = BuildingDraft.objects.select_for_update().get(pk=draft.pk)
    if role not in MANY_COLUMNS:
        draft.roles = [Column.IGNORE if r == role else r for r in draft.roles]
    draft.roles[column] = role
    draft.save(update_fields=["roles"])


@transaction.atomic
def building_draft_discard(*, user: User, draft: BuildingDraft) -> None:
    """Delete an upload."""
    audit(user, "discarded", draft)
    draft.delete()


def building_drafts_expire() -> int:
    """Remove uploads that were not imported or discarded in time; return how many.

    This runs once a day: uploads that would be too old tomorrow are removed today.
    """
    oldest = timezone.now() - timedelta(days=BuildingDraft.KEPT_DAYS - 1)
    return sum(_expire(draft) for draft in BuildingDraft.objects.filter(created_at__lt=oldest))


@transaction.atomic
def _expire(draft: BuildingDraft) -> bool:
    removed, _rest = BuildingDraft.objects.filter(pk=draft.pk).delete()
    if removed:  # otherwise it was just imported or discarded
        audit(None, "expired", draft, organisation=draft.organisation, rows=len(draft.rows))
    return bool(removed)


def building_draft_import(*, user: User, draft: BuildingDraft, name: str) -> BuildingList:
    """Create a building list from all rooms of a draft, or raise HousingError and change nothing.

    Raises
    ------
    HousingError
        If problems remain, there is no room, or the name is taken; nothing was changed.
    """
    found = building_draft_file(draft)
    if found.problems:
        raise HousingError(
            _("%(sentence)s Nothing was imported.") % {"sentence": found.problems[0].sentence}
        )
    name = _checked_name(name)
    try:
        with transaction.atomic():
            claimed, _rest = BuildingDraft.objects.filter(pk=draft.pk).delete()
            if not claimed:
                raise PlacesChangedError(_("This import was finished by somebody else."))
            buildings = BuildingList.objects.create(
                organisation=user.own_organisation,
                created_by=user,
                name=name,
                filename=draft.filename,
            )
            Room.objects.bulk_create(
                (
                    Room(
                        buildings=buildings,
                        hall=row.hall,
                        floor=row.floor,
                        name=row.name,
                        suite=row.suite,
                        capacity=row.capacity,
                        extra_beds=row.max_capacity - row.capacity,
                        designation=row.designation,
                        meets=list(row.meets),
                        state=row.state,
                        note=row.note,
                        position=position,
                    )
                    for position, row in enumerate(found.rooms)
                ),
                batch_size=500,
            )
            meanings_apply(buildings.rooms.all(), need_meanings_of(user))
            audit(user, "imported", buildings, rooms=len(found.rooms), beds=found.n_beds)
    except IntegrityError as error:
        raise HousingError(
            _("There is already a building list called “%(name)s”.") % {"name": name}
        ) from error
    return buildings


@transaction.atomic
def building_list_create(*, user: User, name: str) -> BuildingList:
    """Create an empty building list, to be filled by hand."""
    name = _checked_name(name)
    try:
        with transaction.atomic():
            buildings = BuildingList.objects.create(
                organisation=user.own_organisation, created_by=user, name=name
            )
    except IntegrityError as error:
        raise HousingError(
            _("There is already a building list called “%(name)s”.") % {"name": name}
        ) from error
    audit(user, "created", buildings)
    return buildings


def _checked_name(name: str) -> str:
    name = " ".join(name.split())[:120]
    if not name:
        raise HousingError(_("The building list needs a name."))
    return name


@transaction.atomic
def room_save(
    *, user: User, buildings: BuildingList, room: Room | None, values: dict[str, Any]
) -> SavedRoom:
    """Add or change a room; drafts lose the beds that the room does not offer any more.

    Parameters
    ----------
    values : dict
        hall, floor, name, capacity (a number or None), max_capacity (a number; none without it),
        designation, meets (list), state, note; suite, which stays as it is without it.

    Raises
    ------
    HousingError
        If a value is invalid, the name is taken in its hall, or a student with a published bed
        could not live there any more.
    """
    lock_buildings(buildings)
    capacity, state = values["capacity"], values["state"]
    if not values["hall"] or not values["name"]:
        raise HousingError(
            _("A room needs a hall and a name."), "name" if values["hall"] else "hall"
        )
    if capacity is None or not 1 <= capacity <= MAX_BEDS:
        raise HousingError(
            _("A room has 1 to %(max_beds)s beds.") % {"max_beds": MAX_BEDS}, "capacity"
        )
    most = values.get("max_capacity") or capacity
    if not capacity <= most <= MAX_BEDS:
        raise HousingError(
            ngettext(
                "With extra beds, the room has at least its %(count)s bed and at most "
                "%(max_beds)s.",
                "With extra beds, the room has at least its %(count)s beds and at most "
                "%(max_beds)s.",
                capacity,
            )
            % {"count": f"{capacity:,}", "max_beds": MAX_BEDS},
            "max_capacity",
        )
    if state not in RoomState.values:
        raise HousingError(_("A room is open, held back or offline."), "state")
    room = room or Room(buildings=buildings, position=_next_position(buildings))
    for field in Room._meta.fields:
        if field.name in ("hall", "floor", "name", "designation", "note"):
            setattr(room, field.name, values[field.name][: field.max_length])
    room.suite = values.get("suite", room.suite)[: MOST_LETTERS[Column.SUITE]]
    room.capacity, room.extra_beds = capacity, most - capacity
    room.state, room.meets = state, values["meets"]
    same = buildings.rooms.exclude(pk=room.pk).filter(hall=room.hall, name=room.name)
    if same.exists():
        raise HousingError(
            _("%(hall)s already has a room %(room)s.") % {"hall": room.hall, "room": room.name},
            "name",
        )
    is_new = room.pk is None
    leaving = {} if is_new else students_to_move_out([room])
    check_no_published_bed(leaving, [room])
    check_beds(room)
    room.save()
    meanings_apply([room], need_meanings_of(user))
    why = _("%(room)s was changed.") % {"room": room}
    note = "" if is_new else drafts_leave(user=user, leaving=leaving, why=why)
    number_beds(room)
    buildings_touch(buildings)
    audit(user, "added a room" if is_new else "changed a room", buildings, room=room.label)
    return SavedRoom(room, note)


def need_meanings_of(user: User) -> QuerySet[NeedMeaning]:
    """Return what the organisation said about needs in other words."""
    return NeedMeaning.objects.filter(organisation=user.own_organisation)


def check_beds(room: Room) -> None:
    """Raise HousingError if a published bed has a number that the room will not have."""
    published = Place.objects.filter(room=room.pk, placement__published_at__isnull=False)
    last = published.select_related("placement").order_by("-bed").first()
    if last is not None and (last.bed or 0) > room.max_capacity:
        raise HousingError(
            _(
                "Bed %(bed)s of %(room)s is taken by %(last)s in %(placement)s, which is "
                "published. Move that student by late changes first."
            )
            % {"bed": last.bed, "room": room, "last": last.label, "placement": last.placement},
            "capacity",
        )


def number_beds(room: Room) -> None:
    """Give the first free bed to students of drafts whose bed number is too high.

    Raises HousingError if no other bed is free on all days of a student.
    """
    beyond = Place.objects.filter(room=room, bed__gt=room.max_capacity)
    for place in beyond.select_related("placement__term"):
        term = place.placement.term
        others = place.placement.places.filter(room=room).exclude(pk=place.pk)
        taken = [(other.bed or 0, place_stay(other, term)) for other in others]
        place.bed = first_free_bed(place_stay(place, term), taken)
        if place.bed > room.max_capacity:
            raise HousingError(
                _(
                    "No other bed of %(room)s is free on all days of %(place)s in "
                    "%(placement)s. Move that student first."
                )
                % {"room": room, "place": place.label, "placement": place.placement},
                "capacity",
            )
        place.save(update_fields=["bed"])


@transaction.atomic
def rooms_set_state(
    *, user: User, buildings: BuildingList, rooms: Sequence[int], state: str
) -> str:
    """Open rooms, hold them back or take them offline, all or none; return one sentence.

    Students placed there by drafts then need another room. Raises HousingError if a student has a
    published bed there.
    """
    lock_buildings(buildings)
    if state not in RoomState.values:
        raise HousingError(_("A room is open, held back or offline."))
    found = list(buildings.rooms.select_for_update().filter(pk__in=list(rooms)))
    chosen = [room for room in found if room.state != state]
    if not chosen:
        raise HousingError(
            _("These rooms are %(state)s already.") % {"state": RoomState(state).label.lower()}
        )
    for room in chosen:
        room.state = state
    leaving = {} if state == RoomState.OPEN else students_to_move_out(chosen)
    check_no_published_bed(leaving, chosen)
    Room.objects.filter(pk__in=[room.pk for room in chosen]).update(state=state)
    sentence = closed_words(chosen, state)
    note = drafts_leave(user=user, leaving=leaving, why=sentence)
    buildings_touch(buildings)
    audit(user, "changed rooms", buildings, rooms=len(chosen), what=sentence)
    return f"{sentence} {note}".strip()


def _next_position(buildings: BuildingList) -> int:
    last = buildings.rooms.aggregate(last=Max("position"))["last"]
    return 0 if last is None else last + 1


def buildings_touch(buildings: BuildingList) -> None:
    """Record that a list changed now."""
    BuildingList.objects.filter(pk=buildings.pk).update(updated_at=timezone.now())


@transaction.atomic
def room_remove(*, user: User, room: Room) -> str:
    """Remove a room from its list; return a sentence on drafts that used it, or "".

    Raises HousingError if a student has a published bed there.
    """
    lock_buildings(room.buildings)
    room.state = RoomState.OFFLINE
    leaving = students_to_move_out([room])
    check_no_published_bed(leaving, [room])
    why = _("%(room)s was removed.") % {"room": room}
    note = drafts_leave(user=user, leaving=leaving, why=why)
    audit(user, "removed a room", room.buildings, room=room.label)
    buildings_touch(room.buildings)
    room.delete()
    return note


@transaction.atomic
def building_list_remove(*, user: User, buildings: BuildingList, typed_name: str) -> None:
    """Remove a building list that no placement uses, if its name was typed."""
    if typed_name.strip() != buildings.name:
        raise HousingError(_("The name does not match. Nothing was removed."))
    used = buildings.placements.first()
    if used is not None:
        raise HousingError(
            _("%(used)s uses these rooms. Remove that placement first.") % {"used": used.name}
        )
    audit(user, "removed", buildings, rooms=buildings.rooms.count())
    buildings.delete()


@transaction.atomic
def building_list_rename(*, user: User, buildings: BuildingList, name: str) -> None:
    """Rename a building list."""
    name = _checked_name(name)
    same = BuildingList.objects.filter(organisation=buildings.organisation, name=name)
    if same.exclude(pk=buildings.pk).exists():
        raise HousingError(
            _("There is already a building list called “%(name)s”.") % {"name": name}
        )
    audit(user, "renamed", buildings, to=name)
    BuildingList.objects.filter(pk=buildings.pk).update(name=name)
