"""Making, computing, publishing and removing placements."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from engine import InvalidProblemError
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.selectors.surveys import cohort_survey, questionnaire_of
from webapp.common.formats import counted
from webapp.common.free_names import free_name
from webapp.files.quota import with_fresh_count
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingList, Place, Placement, Room
from webapp.housing.rules import COUNTS, PlacementRules
from webapp.housing.services.checks import check_free_elsewhere, check_rooms
from webapp.housing.services.decisions import lock_placement
from webapp.housing.services.requests import requests_cut
from webapp.housing.told import tell_finished, tell_published
from webapp.jobs.services import job_enqueue
from webapp.matching.models import ForbiddenPair, LearnedModel
from webapp.matching.selectors.models import learned_since

MAX_WORTH = 100.0  # what a wish or a move may count at most (score)


@with_fresh_count
@transaction.atomic
def placement_create(
    *,
    user: User,
    name: str,
    cohort: Cohort,
    buildings: BuildingList,
    model: LearnedModel,
    rules: PlacementRules,
) -> Placement:
    """Create a placement and start working it out.

    Raises
    ------
    HousingError, QuotaError
        One sentence: the model is not learned, the questions differ, a column is unknown.
    """
    if not model.is_learned:
        raise HousingError(f"{model.name} is not learned yet.")
    check_rules(rules, cohort)
    try:
        cohort_survey(cohort, questionnaire_of(model.questions))
    except InvalidProblemError as error:
        raise HousingError(str(error)) from error
    placement = Placement.objects.create(
        organisation=user.organisation,
        created_by=user,
        name=" ".join(name.split())[:120] or free_name(cohort.name, cohort.placements.all()),
        cohort=cohort,
        buildings=buildings,
        model=model,
        rules=rules.to_json(),
    )
    audit(user, "created", placement, cohort=cohort.name, buildings=buildings.name)
    return _compute(user, placement)


def check_rules(rules: PlacementRules, cohort: Cohort) -> None:
    """Raise HousingError for a rule that names no column, or counts as it cannot."""
    named = [*rules.same, *rules.needs, *([rules.designation] if rules.designation else [])]
    unknown = [column for column in named if column not in cohort.constraints]
    if unknown:
        raise HousingError(f"{unknown[0]} is not a rule column of {cohort.name}.")
    if rules.mutual not in COUNTS or rules.one_sided not in COUNTS:
        raise HousingError("A request counts as a must, as a wish, or not at all.")
    for words, value in (
        ("A wish", rules.wish),
        ("The first choice", rules.preference),
        ("A move", rules.price),
    ):
        if not 0 <= value <= MAX_WORTH:
            raise HousingError(f"{words} counts from 0 to {MAX_WORTH:.0f}.")


@with_fresh_count
@transaction.atomic
def placement_compute(*, user: User, placement: Placement) -> Placement:
    """Work the rooms out again around who is locked.

    Raises HousingError while a job is running, or when the placement is published: then changes
    are proposed first.
    """
    placement = lock_placement(placement)
    if placement.is_published:
        raise HousingError(f"{placement.name} is published. Propose late changes instead.")
    return _compute(user, placement)


def _compute(user: User, placement: Placement) -> Placement:
    placement.job = job_enqueue(
        user=user,
        kind="housing.place",
        parameters={"placement": str(placement.pk)},
        title=placement.name,
        stores=200 * placement.cohort.n_students,
    )
    placement.clashes = []
    placement.save(update_fields=["job", "clashes"])
    return placement


@with_fresh_count
@transaction.atomic
def rules_change(*, user: User, placement: Placement, rules: PlacementRules) -> Placement:
    """Set other rules and work the rooms out again."""
    placement = lock_placement(placement)
    if placement.is_published:
        raise HousingError(f"{placement.name} is published. Copy it to try other rules.")
    check_rules(rules, placement.cohort)
    placement.rules = rules.to_json()
    placement.save(update_fields=["rules"])
    audit(user, "changed rules", placement, rules=rules.to_json())
    return _compute(user, placement)


@with_fresh_count
@transaction.atomic
def placement_copy(
    *,
    user: User,
    placement: Placement,
    rules: PlacementRules,
    model: LearnedModel | None = None,
) -> Placement:
    """Make another scenario of the same cohort and rooms under other rules, or another model."""
    check_rules(rules, placement.cohort)
    copy = Placement.objects.create(
        organisation=user.organisation,
        created_by=user,
        name=free_name(placement.name, placement.cohort.placements.all()),
        cohort=placement.cohort,
        buildings=placement.buildings,
        model=model or placement.model,
        rules=rules.to_json(),
    )
    audit(user, "created", copy, copied_from=placement.name)
    return _compute(user, copy)


def placement_relearn(*, user: User, placement: Placement) -> Placement:
    """Make a scenario with learned weights of a placement whose weights staff set.

    Raises HousingError when nothing was learned since that asks the same questions.
    """
    model = learned_since(placement.model)
    if model is None:
        raise HousingError("No model was learned since that asks the same questions.")
    rules = PlacementRules.from_json(placement.rules)
    return placement_copy(user=user, placement=placement, rules=rules, model=model)


def placement_store(
    *,
    placement_id: UUID,
    rooms: Mapping[int, int | None],
    scores: Mapping[int, float | None],
    doubts: Mapping[int, float | None],
    figures: dict[str, Any],
) -> None:
    """Keep computed rooms; call it in the transaction that ends the job.

    Parameters
    ----------
    rooms : mapping of a student's key to a room's key, or None.
    scores : mapping of a student's key to the mean of the pairs with the roommates.
    doubts : mapping of a student's key to the share of likely roommates.

    Raises
    ------
    HousingError
        If the placement was removed, or a student or room of it is gone or was changed so that a
        rule would break.
    """
    placement = Placement.objects.select_for_update().filter(pk=placement_id).first()
    if placement is None:
        raise HousingError("The placement was removed meanwhile.")
    check_computed(placement, rooms)
    places = _computed_places(placement, rooms, scores, doubts)
    placement.places.all().delete()
    Place.objects.bulk_create(places, batch_size=400)
    now = timezone.now()
    Placement.objects.filter(pk=placement.pk).update(
        revision=F("revision") + 1,
        version=F("version") + 1,
        changes=0,
        best_at=now,
        updated_at=now,
        figures=figures,
        clashes=[],
    )
    placed = sum(room is not None for room in rooms.values())
    tell_finished(placement, placed=placed, students=len(rooms))


def _computed_places(
    placement: Placement,
    rooms: Mapping[int, int | None],
    scores: Mapping[int, float | None],
    doubts: Mapping[int, float | None],
) -> list[Place]:
    """Return a place for everybody of the cohort: locks, turns and who has left stay as they are.

    Whoever was not part of the computation waits for a room.
    """
    numbers = dict(placement.cohort.students.values_list("pk", "number"))
    turns = dict(placement.places.exclude(turn=0).values_list("student_id", "turn"))
    locked = set(placement.places.filter(is_locked=True).values_list("student_id", flat=True))
    left = list(placement.places.filter(has_left=True).values_list("student_id", flat=True))
    next_bed: dict[int, int] = {}
    rows = []
    for student, room in sorted(rooms.items(), key=lambda entry: numbers[entry[0]]):
        bed = None
        if room is not None:
            bed = next_bed[room] = next_bed.get(room, 0) + 1
        rows.append(
            Place(
                placement=placement,
                student_id=student,
                number=numbers[student],
                room_id=room,
                bed=bed,
                is_locked=student in locked and room is not None,
                score=scores.get(student),
                doubt=doubts.get(student),
                turn=turns.get(student, 0),
            )
        )
    late = [key for key in numbers if key not in rooms and key not in left]
    rows += [Place(placement=placement, student_id=key, number=numbers[key]) for key in late]
    rows += [
        Place(placement=placement, student_id=key, number=numbers[key], has_left=True)
        for key in left
        if key in numbers
    ]
    return rows


def check_computed(placement: Placement, rooms: Mapping[int, int | None]) -> None:
    """Raise HousingError when rooms, students or rules changed so that computed rooms do not hold.

    ``rooms`` maps a student's key to a room's key, or None.
    """
    students = {s.pk: s for s in placement.cohort.students.defer("answers")}
    found = {room.pk: room for room in placement.buildings.rooms.all()}
    if any(student not in students for student in rooms) or any(
        key is not None and key not in found for key in rooms.values()
    ):
        raise HousingError("Rooms or students were removed meanwhile. Work it out again.")
    members: dict[Room, list[Student]] = {}
    for student, key in rooms.items():
        if key is not None:
            members.setdefault(found[key], []).append(students[student])
    try:
        check_rooms(placement, members)
    except HousingError as error:
        raise HousingError(f"{error} That changed meanwhile: work it out again.") from error


def placement_clash(*, placement_id: UUID, clashes: Sequence[dict[str, Any]]) -> None:
    """Keep what made a computation impossible, for the page to name.

    Each has a ``sentence`` and the ``requests`` and ``nevers`` that take part, as pairs of numbers
    on screen, and the ``locks``, as numbers.
    """
    Placement.objects.filter(pk=placement_id).update(clashes=list(clashes))


@with_fresh_count
@transaction.atomic
def clashes_solve(
    *, user: User, placement: Placement, clash: int | None, leave: str = "requests"
) -> str:
    """Leave something out of one clash, or of all (None), and place again; say what, in words.

    Parameters
    ----------
    leave : "requests", "locks" (students are released) or "nevers" (they may share a room again).

    Raises HousingError when nothing of the kind takes part: then only the rules or the beds can
    change.
    """
    placement = lock_placement(placement)
    chosen = placement.clashes if clash is None else placement.clashes[clash : clash + 1]
    out = [found for entry in chosen for found in entry.get(leave, ())]
    if not out or leave not in ("requests", "locks", "nevers"):
        raise HousingError(
            "Nothing of this kind takes part any more. Change the rules, or add beds."
        )
    if leave == "requests":
        requests_cut(user=user, cohort=placement.cohort, pairs=[(a, b) for a, b in out])
        words = f"{counted(len(out), 'request')} left out."
    elif leave == "locks":
        placement.places.filter(number__in=out).update(is_locked=False)
        audit(user, "released", placement, students=[f"S-{number}" for number in out][:50])
        words = f"{counted(len(out), 'student')} released."
    else:
        nevers_remove(user=user, cohort=placement.cohort, pairs=[(a, b) for a, b in out])
        words = f"{counted(len(out), 'pair')} may share a room again."
    _compute(user, placement)
    return f"{words} The rooms are worked out again."


def nevers_remove(*, user: User, cohort: Cohort, pairs: Sequence[tuple[int, int]]) -> None:
    """Let students share a room again who were never to."""
    for pair in pairs:
        ForbiddenPair.objects.filter(
            cohort=cohort, proposal=None, first__number__in=pair, second__number__in=pair
        ).delete()
    audit(user, "let share a room", cohort, pairs=[f"S-{a} + S-{b}" for a, b in pairs][:50])


@transaction.atomic
def placement_publish(*, user: User, placement: Placement, version: int) -> Placement:
    """Make a placement the one that students get; the cohort's other one is published no more."""
    placement = lock_placement(placement, version)
    if not placement.is_computed:
        raise HousingError(f"{placement.name} has no rooms yet.")
    if placement.is_published:
        raise HousingError(f"{placement.name} is published already.")
    check_free_elsewhere(placement)
    others = Placement.objects.filter(cohort=placement.cohort, published_at__isnull=False)
    for other in others:
        audit(user, "withdrew publication", other)
    others.update(published_at=None, published_by="", version=F("version") + 1)
    placement.published_at = timezone.now()
    placement.published_by = user.get_username()
    placement.version += 1
    try:
        with transaction.atomic():
            placement.save(update_fields=["published_at", "published_by", "version"])
    except IntegrityError as error:
        raise HousingError("Somebody published another placement meanwhile.") from error
    placed = placement.places.filter(room__isnull=False).count()
    audit(user, "published", placement, people=placed)
    tell_published(placement, placed=placed)
    return placement


@transaction.atomic
def placement_unpublish(*, user: User, placement: Placement) -> None:
    """Take a publication back; nothing else changes."""
    placement = lock_placement(placement)
    if not placement.is_published:
        raise HousingError(f"{placement.name} is not published.")
    Placement.objects.filter(pk=placement.pk).update(
        published_at=None, published_by="", version=F("version") + 1
    )
    audit(user, "withdrew publication", placement)


@transaction.atomic
def placement_rename(*, user: User, placement: Placement, name: str) -> None:
    """Give a placement another name."""
    name = " ".join(name.split())[:120]
    if not name:
        raise HousingError("The placement needs a name.")
    audit(user, "renamed", placement, to=name)
    Placement.objects.filter(pk=placement.pk).update(name=name)


@transaction.atomic
def placement_delete(*, user: User, placement: Placement, typed_name: str) -> None:
    """Remove a placement with its history, when its name was typed."""
    if typed_name.strip() != placement.name:
        raise HousingError("The name does not match. Nothing was removed.")
    lock_placement(placement)
    audit(user, "removed", placement, people=placement.places.count())
    placement.delete()
