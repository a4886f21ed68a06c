"""Acts of staff on rounds: save, publish, pause, resume, extend, close, remove, undo a choice.

Every act names the version of the round that its page showed; an act on an older one is refused.
"""

from collections.abc import Sequence
from datetime import datetime, time, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.housing.models import Placement, PlacementEvent
from webapp.housing.services.decisions import decision_make, emptying
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.undo import decision_undo
from webapp.room_choice.errors import ChoiceConflictError, ChoiceError
from webapp.room_choice.models import (
    LIVE,
    MAX_NAME,
    MAX_SEED,
    ChoiceRound,
    ChoiceSlot,
    RoundState,
)
from webapp.room_choice.selectors.groups import order_of, slot_starts
from webapp.room_choice.services.mails import slot_mails_queue

MAX_ROUNDS = 50  # of one placement
MAX_LENGTH = timedelta(days=60)
MIN_MINUTES, MAX_MINUTES = 5, 1_440


@transaction.atomic
def round_save(
    *,
    user: User,
    placement: Placement,
    round: ChoiceRound | None,
    name: str,
    opens_at: datetime,
    closes_at: datetime,
    minutes: int,
    seed: int,
    day_from: time | None = None,
    day_to: time | None = None,
    stays_open: bool = False,
    column: str = "",
    value: str = "",
    rule: str = "",
    rule_values: Sequence[str] = (),
    version: int = 0,
) -> ChoiceRound:
    """Create a round as a draft, or change a draft.

    Raises
    ------
    ChoiceError
        For a blank or repeated name, impossible times, or an unknown column or answer.
    ChoiceConflictError
        If somebody else changed the round meanwhile, or its slots are published.
    """
    placement = lock_placement(placement)
    check_can_choose(placement)
    if round is None:
        if placement.choice_rounds.count() >= MAX_ROUNDS:
            raise ChoiceError(
                _("A placement has at most %(max_rounds)s rounds. Remove one first.")
                % {"max_rounds": MAX_ROUNDS}
            )
        round = ChoiceRound(placement=placement, created_by=user)
    else:
        round = _locked(round, version)
        if not round.is_draft:
            raise ChoiceConflictError(
                _("The slots of this round are published. Extend it instead.")
            )
        round.version += 1
    round.placement = placement
    round.name = " ".join(name.split())
    round.opens_at, round.closes_at, round.minutes = opens_at, closes_at, minutes
    round.day_from, round.day_to, round.stays_open = day_from, day_to, stays_open
    round.column, round.value = column, value if column else ""
    round.rule, round.rule_values = rule, list(rule_values) if rule else []
    round.seed = seed
    _check(round)
    is_new = round.pk is None
    try:
        with transaction.atomic():
            round.save()
    except IntegrityError as error:
        raise ChoiceError(
            _("There is a round called %(round)s already.") % {"round": round.name}, "name"
        ) from error
    audit(
        user,
        "created a round of room choice" if is_new else "changed a round of room choice",
        placement,
        round=round.name,
        seed=seed,
    )
    return round


def check_can_choose(placement: Placement) -> None:
    """Raise ChoiceError if students cannot choose rooms of a placement."""
    if placement.is_pairs:
        raise ChoiceError(
            _("%(placement)s holds pairs without rooms, so nobody can choose one.")
            % {"placement": placement.name}
        )
    if not placement.is_computed:
        raise ChoiceError(
            _("%(placement)s has no students yet. Place the cohort once first.")
            % {"placement": placement.name}
        )
    if placement.is_published:
        raise ChoiceError(
            _("%(placement)s is published, so its rooms are fixed. Withdraw the publication first.")
            % {"placement": placement.name}
        )


def _check(round: ChoiceRound) -> None:
    if not round.name:
        raise ChoiceError(_("The round needs a name."), "name")
    if len(round.name) > MAX_NAME:
        raise ChoiceError(_("The name is too long. Shorten it."), "name")
    if round.closes_at <= round.opens_at:
        raise ChoiceError(_("The round has to close after it opens."), "closes_at")
    if round.closes_at - round.opens_at > MAX_LENGTH:
        raise ChoiceError(
            _("A round lasts at most %(days)s days.") % {"days": MAX_LENGTH.days}, "closes_at"
        )
    if not MIN_MINUTES <= round.minutes <= MAX_MINUTES:
        words = _("A slot has %(min_minutes)s to %(max_minutes)s minutes.") % {
            "min_minutes": MIN_MINUTES,
            "max_minutes": f"{MAX_MINUTES:,}",
        }
        raise ChoiceError(words, "minutes")
    if (round.day_from is None) != (round.day_to is None):
        raise ChoiceError(_("Give both times of the day, or neither."), "day_to")
    if round.day_from is not None and round.day_to is not None and round.day_from >= round.day_to:
        raise ChoiceError(_("The slots of a day have to end after they begin."), "day_to")
    if next(slot_starts(round), None) is None:
        raise ChoiceError(_("No slot of this length fits between these times."), "minutes")
    if not 0 <= round.seed <= MAX_SEED:
        raise ChoiceError(
            _("The seed is a whole number from 0 to %(max_seed)s.") % {"max_seed": f"{MAX_SEED:,}"},
            "seed",
        )
    known = round.placement.cohort.constraints
    for column, field in ((round.column, "who"), (round.rule, "rule")):
        if column and column not in known:
            raise ChoiceError(
                _("%(column)s is no rule column of this cohort.") % {"column": column}, field
            )


def _locked(round: ChoiceRound, version: int) -> ChoiceRound:
    """Return a round locked and unchanged since ``version``; lock its placement before."""
    rows = ChoiceRound.objects.select_for_update(of=("self",))
    found = rows.select_related("placement__cohort", "placement__organisation")
    fresh = found.filter(pk=round.pk).first()
    if fresh is None:
        raise ChoiceError(_("This round was removed meanwhile."))
    if fresh.version != version:
        raise ChoiceConflictError(
            _(
                "Somebody else changed this round meanwhile. Nothing was changed by you; "
                "look at it again."
            )
        )
    return fresh


def _save(round: ChoiceRound, *fields: str) -> None:
    round.version += 1
    round.save(update_fields=[*fields, "version"])


@transaction.atomic
def round_publish(*, user: User, round: ChoiceRound, version: int, send_mail: bool) -> int:
    """Give each group its slot and show it to the students; return the number of students.

    ``send_mail`` queues a mail with slot and personal link to each student with an e-mail.

    Raises ChoiceError if no student is in the round, the round is over already, or students of the
    cohort choose rooms of another placement.
    """
    placement = lock_placement(round.placement)
    check_can_choose(placement)
    round = _locked(round, version)
    if not round.is_draft:
        raise ChoiceConflictError(_("The slots of this round are published already."))
    if round.closes_at <= timezone.now():
        raise ChoiceError(_("The round would be over already. Change its times first."))
    if send_mail and not settings.PUBLIC_URL:
        raise ChoiceError(
            _(
                "This installation has no public address, so mails could hold no link. "
                "Publish without mails, or ask its operator to set PUBLIC_URL."
            ),
            "send_mail",
        )
    _check_only_placement(placement)
    turns = order_of(round)
    if not turns:
        raise ChoiceError(_("No student of this round is without a room, so nobody can choose."))
    students = dict(placement.cohort.students.values_list("number", "pk"))
    slots = ChoiceSlot.objects.bulk_create(
        (
            ChoiceSlot(
                round=round,
                student_id=students[number],
                turn=turn.turn,
                starts_at=turn.starts_at,
                ends_at=turn.ends_at,
            )
            for turn in turns
            for number in turn.group
        ),
        batch_size=400,
    )
    round.state = RoundState.OPEN
    _save(round, "state")
    mails = slot_mails_queue(round) if send_mail else 0
    audit(
        user, "published slots of room choice", placement, round=round.name, seed=round.seed,
        students=len(slots), groups=len(turns), mails=mails,
    )  # fmt: skip
    return len(slots)


def _check_only_placement(placement: Placement) -> None:
    """Raise ChoiceError if students of the cohort choose rooms of another placement."""
    Cohort.objects.select_for_update().get(pk=placement.cohort_id)
    others = ChoiceRound.objects.filter(placement__cohort=placement.cohort_id, state__in=LIVE)
    other = others.exclude(placement=placement).select_related("placement").first()
    if other is not None:
        raise ChoiceError(
            _(
                "Students choose rooms of %(placement)s in the round %(other)s. Close that "
                "round first."
            )
            % {"placement": other.placement.name, "other": other.name}
        )


@transaction.atomic
def round_pause(*, user: User, round: ChoiceRound, version: int) -> None:
    """Stop all choices of a round until it is resumed."""
    lock_placement(round.placement)
    round = _locked(round, version)
    if round.state != RoundState.OPEN:
        raise ChoiceConflictError(_("Only a published round can be paused."))
    round.state, round.paused_at = RoundState.PAUSED, timezone.now()
    _save(round, "state", "paused_at")
    audit(user, "paused room choice", round.placement, round=round.name)


@transaction.atomic
def round_resume(*, user: User, round: ChoiceRound, version: int) -> int:
    """Let students choose again; return how many students got a longer slot.

    A slot that lost time to the pause gets its whole length from now on. Starts stay as they are.
    """
    lock_placement(round.placement)
    round = _locked(round, version)
    if round.state != RoundState.PAUSED or round.paused_at is None:
        raise ChoiceConflictError(_("This round is not paused."))
    now = timezone.now()
    until = now + timedelta(minutes=round.minutes)
    cut = round.slots.filter(starts_at__lt=now, ends_at__gt=round.paused_at, ends_at__lt=until)
    count = cut.update(ends_at=until)
    round.state, round.paused_at = RoundState.OPEN, None
    round.closes_at = max(round.closes_at, until) if count else round.closes_at
    _save(round, "state", "paused_at", "closes_at")
    audit(user, "resumed room choice", round.placement, round=round.name, longer_slots=count)
    return count


@transaction.atomic
def round_extend(*, user: User, round: ChoiceRound, version: int, closes_at: datetime) -> None:
    """Keep a round open longer: from their start on, all its slots end at the new time.

    A closed round opens again.
    """
    placement = lock_placement(round.placement)
    check_can_choose(placement)
    round = _locked(round, version)
    if round.is_draft:
        raise ChoiceConflictError(_("Change the times of a draft instead."))
    if closes_at <= max(timezone.now(), round.closes_at if round.is_live else round.opens_at):
        raise ChoiceError(_("Choose a later time than the present one."), "closes_at")
    if closes_at - round.opens_at > MAX_LENGTH:
        raise ChoiceError(
            _("A round lasts at most %(days)s days.") % {"days": MAX_LENGTH.days}, "closes_at"
        )
    if not round.is_live:
        _check_only_placement(placement)
        round.state = RoundState.OPEN
    round.closes_at = closes_at
    round.slots.filter(ends_at__lt=closes_at).update(ends_at=closes_at)
    _save(round, "state", "closes_at")
    audit(user, "extended room choice", placement, round=round.name, until=closes_at.isoformat())


@transaction.atomic
def round_close(*, user: User, round: ChoiceRound, version: int) -> None:
    """End a round now. Choices stay; students without one stay without a room."""
    lock_placement(round.placement)
    round = _locked(round, version)
    if not round.is_live:
        raise ChoiceConflictError(_("This round is not open."))
    round.state, round.paused_at = RoundState.CLOSED, None
    _save(round, "state", "paused_at")
    audit(user, "closed room choice", round.placement, round=round.name)


@transaction.atomic
def round_remove(*, user: User, round: ChoiceRound, version: int) -> None:
    """Remove a draft of a round."""
    lock_placement(round.placement)
    round = _locked(round, version)
    if not round.is_draft:
        raise ChoiceConflictError(_("Students know the slots of this round. Close it instead."))
    audit(user, "removed a round of room choice", round.placement, round=round.name)
    round.delete()


@transaction.atomic
def rooms_empty(*, user: User, placement: Placement, people: int, version: int) -> PlacementEvent:
    """Take all students out of their rooms who are not locked there, as one act.

    ``people`` is the number of students in the question that was confirmed.
    """
    placement = lock_placement(placement)
    check_can_choose(placement)
    numbers = movable_students(placement)
    if not numbers or len(numbers) != people:
        raise ChoiceConflictError(
            ngettext(
                "%(count)s student lives there by now without being locked. Nothing was "
                "changed; confirm that number.",
                "%(count)s students live there by now without being locked. Nothing was "
                "changed; confirm that number.",
                len(numbers),
            )
            % {"count": f"{len(numbers):,}"}
        )
    decision = emptying(numbers)
    return decision_make(user=user, placement=placement, decision=decision, version=version)


def movable_students(placement: Placement) -> list[int]:
    """Return the students with a room who are not locked into it, by number."""
    places = placement.places.with_bed().filter(is_locked=False)
    return list(places.values_list("number", flat=True))


def choice_undo(*, user: User, round: ChoiceRound, event_id: int) -> str:
    """Undo one choice of a round through the history of the placement; return one sentence."""
    choice = round.choices.filter(event=event_id).select_related("event").first()
    if choice is None:
        raise ChoiceError(_("There is nothing to undo."))
    return decision_undo(user=user, placement=round.placement, event=choice.event)
