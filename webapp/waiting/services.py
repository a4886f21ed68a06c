"""Acts on waiting lists: their rule, and offers of beds with a deadline.

Every act locks the placement first, and an offer leaves its open state by compare-and-set: of two
answers one counts. An open offer holds its bed (:mod:`webapp.housing.services.checks`). The student
who accepts gets the bed by the same checks as every decision of staff.
"""

import secrets
from datetime import timedelta

import structlog
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.addresses import address_of
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import (
    ActKind,
    OfferState,
    OrderRule,
    Placement,
    PlacementEvent,
    Room,
    WaitingList,
    WaitingOffer,
)
from webapp.housing.models.waiting import MAX_HOURS, MAX_SEED, MAX_VALUES, MAX_WHY
from webapp.housing.selectors.waiting import waiting_list_of
from webapp.housing.services.history import event_record, offers_withdraw
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.seats import Seat, Seating, seats_put
from webapp.residents.mails import mail_offer, mail_offer_ended
from webapp.translation.lazy import gettext_lazy
from webapp.translation.staff import staff_language
from webapp.waiting.models import MoveWish
from webapp.waiting.selectors import next_student

log = structlog.get_logger(__name__)

GONE = gettext_lazy("This offer was answered or withdrawn meanwhile. Nothing was changed.")
LATE = gettext_lazy("The deadline of this offer has passed. Nothing was changed.")


class OfferEndedError(PlacesChangedError):
    """Refusal because the offer is not open any more."""


class BedLostError(HousingError):
    """Refusal because the student may not live in the room any more; the offer is withdrawn."""


@transaction.atomic
def waiting_list_set(
    *,
    user: User,
    placement: Placement,
    rule: str,
    column: str = "",
    values: str = "",
    seed: str = "",
    hours: int,
    is_automatic: bool,
    skips_unreachable: bool,
) -> WaitingList:
    """Set the order of a waiting list and how its beds are offered.

    A lottery without a seed gets a random one. Raises HousingError for an unknown rule or column.
    """
    placement = lock_placement(placement)
    column, values, seed = column.strip(), " ".join(values.split()), " ".join(seed.split())
    if rule not in OrderRule.values:
        raise HousingError(gettext("Choose a rule for the order."), "rule")
    if rule == OrderRule.COLUMN and column not in placement.cohort.constraints:
        raise HousingError(
            gettext("%(cohort)s has no such column. Choose one.") % {"cohort": placement.cohort},
            "column",
        )
    if len(values) > MAX_VALUES:
        raise HousingError(gettext("The list of values is too long. Shorten it."), "values")
    if len(seed) > MAX_SEED:
        raise HousingError(
            gettext("A seed has at most %(most)s characters.") % {"most": MAX_SEED}, "seed"
        )
    _check_hours(hours)
    listed = waiting_list_of(placement)
    listed.rule, listed.column, listed.values = rule, column, values
    listed.seed = seed or (secrets.token_hex(4) if rule == OrderRule.LOTTERY else "")
    listed.hours, listed.is_automatic = hours, is_automatic
    listed.skips_unreachable = skips_unreachable
    listed.save()
    audit(
        user,
        "set the order of the waiting list",
        placement,
        rule=rule,
        column=column,
        seed=listed.seed,
        hours=hours,
        automatic=is_automatic,
    )
    return listed


def _check_hours(hours: int) -> None:
    if not 1 <= hours <= MAX_HOURS:
        raise HousingError(
            gettext("A deadline is 1 to {most} hours away.").format(most=MAX_HOURS), "hours"
        )


@transaction.atomic
def offer_make(
    *, user: User | None, placement: Placement, room: Room, number: int | None, hours: int
) -> WaitingOffer:
    """Offer a free bed of a room to the next student who may live there, and queue the mail.

    Parameters
    ----------
    user : None for an offer that follows another by itself.
    number : the student whom the page named; None for whoever is next.
    hours : time to answer.

    Raises
    ------
    PlacesChangedError
        If another student is next by now.
    HousingError
        If the placement is not published, the room has no free bed, or nobody may live there.
    """
    _check_hours(hours)
    placement = lock_placement(placement)
    if placement.is_pairs:
        raise HousingError(
            gettext(
                "Pairs have no beds to offer. The waiting list says how to pair students who wait."
            )
        )
    if not placement.is_published:
        raise HousingError(
            gettext("%(placement)s is not published. Publish it, then offer its beds.")
            % {"placement": placement.name}
        )
    found = next_student(placement, room)
    if found.number is None:
        raise HousingError(found.sentence)
    if number is not None and found.number != number:
        raise PlacesChangedError(
            gettext("S-%(number)s is next by now. Nothing was offered; look at the list again.")
            % {"number": found.number}
        )
    # The same checks as those of a decision that moves the student there.
    Seating(placement, {found.number: Seat(room.pk)}).check()
    student = placement.cohort.students.defer("answers").get(number=found.number)
    now = timezone.now()
    offer = WaitingOffer.objects.create(
        placement=placement,
        student=student,
        room=room,
        room_label=room.label,
        hours=hours,
        offered_at=now,
        deadline=now + timedelta(hours=hours),
        offered_by=user,
    )
    is_mailed = mail_offer(offer)
    _audit(user, "offered a bed", offer, hours=hours, mail=is_mailed)
    return offer


@transaction.atomic
def offer_accept(*, offer: WaitingOffer, user: User | None = None) -> PlacementEvent:
    """Give the student the offered bed: one act of the placement's history.

    A student who lives elsewhere leaves the old bed by the same act, and not before; the sweep then
    offers the old bed to the next student.

    ``user`` is the person of staff who took the answer by phone, None for the student.

    Raises
    ------
    OfferEndedError
        If the offer was answered, withdrawn, or its deadline has passed.
    BedLostError
        If a rule forbids the bed by now; the offer stays open until :func:`offer_void`.
    """
    placement = lock_placement(offer.placement)
    found = _close(offer, OfferState.ACCEPTED, user)
    number = found.student.number
    if not placement.is_published or found.room_id is None:
        with staff_language():  # the offer stores a refusal
            raise BedLostError(
                gettext("The room is not published or not in the building list any more.")
            )
    try:
        with staff_language():  # the offer stores a refusal
            seating = seats_put(placement, {number: Seat(found.room_id)})
    except HousingError as error:
        raise BedLostError(str(error)) from error
    with staff_language():  # the history of the placement stores the sentence
        event = event_record(
            user=user,
            placement=placement,
            kind=ActKind.OFFERED,
            verb="accepted an offered bed",
            sentence=gettext("%(student)s accepted a bed in %(room)s.")
            % {"student": f"S-{number}", "room": found.room_label},
            before=seating.before,
            after=seating.after,
        )
    left = seating.before[0][1]
    WaitingOffer.objects.filter(pk=found.pk).update(event=event, was_followed=left is None)
    MoveWish.objects.filter(placement=placement, student=found.student).update(event=event)
    return event


@transaction.atomic
def offer_decline(*, offer: WaitingOffer, user: User | None = None) -> None:
    """Decline an offer; the sweep then offers the bed to the next student."""
    lock_placement(offer.placement)
    found = _close(offer, OfferState.DECLINED, user)
    _audit(user, "declined an offered bed", found)


@transaction.atomic
def offer_withdraw(*, user: User, offer: WaitingOffer, why: str) -> None:
    """Withdraw an open offer; the bed is free, and the student gets a mail."""
    lock_placement(offer.placement)
    why = " ".join(why.split())
    if not why:
        raise HousingError(gettext("Write why. Staff read it in the list of offers."), "why")
    if len(why) > MAX_WHY or "\x00" in why:
        raise HousingError(
            gettext("A reason has at most %(most)s characters.") % {"most": MAX_WHY}, "why"
        )
    found = _close(offer, OfferState.WITHDRAWN, user, why=why, is_late_too=True)
    mail_offer_ended(found)
    _audit(user, "withdrew an offered bed", found)


@transaction.atomic
def offer_void(*, offer: WaitingOffer, why: str) -> None:
    """Withdraw an offer whose bed the student may not have any more."""
    lock_placement(offer.placement)
    found = _close(offer, OfferState.WITHDRAWN, None, why=why[:MAX_WHY], is_late_too=True)
    _audit(None, "withdrew an offered bed", found)


@transaction.atomic
def offer_extend(*, user: User, offer: WaitingOffer, hours: int) -> WaitingOffer:
    """Give an open offer a new deadline, counted from now, and queue a mail."""
    _check_hours(hours)
    lock_placement(offer.placement)
    found = _open_offer(offer)
    found.deadline = timezone.now() + timedelta(hours=hours)
    found.save(update_fields=["deadline"])
    is_mailed = mail_offer(found)
    _audit(user, "extended an offered bed", found, hours=hours, mail=is_mailed)
    return found


def _open_offer(offer: WaitingOffer) -> WaitingOffer:
    """Return an offer as it is now; raise OfferEndedError if it is not open."""
    rows = WaitingOffer.objects.select_related("student", "placement__organisation")
    found = rows.defer("student__answers").filter(pk=offer.pk, state=OfferState.OPEN).first()
    if found is None:
        raise OfferEndedError(GONE)
    return found


def _close(
    offer: WaitingOffer,
    state: OfferState,
    user: User | None,
    *,
    why: str = "",
    is_late_too: bool = False,
) -> WaitingOffer:
    """Bring an open offer into another state, by compare-and-set."""
    found = _open_offer(offer)
    if found.is_late and not is_late_too:
        raise OfferEndedError(LATE)
    updated = WaitingOffer.objects.filter(pk=found.pk, state=OfferState.OPEN).update(
        state=state, answered_at=timezone.now(), answered_by=user, why=why
    )
    if not updated:
        raise OfferEndedError(GONE)
    return found


def _audit(user: User | None, verb: str, offer: WaitingOffer, **facts: object) -> None:
    audit(
        user,
        verb,
        offer.placement,
        organisation=offer.placement.organisation,
        student=offer.student.label,
        room=offer.room_label,
        **facts,
    )


def offers_sweep() -> int:
    """End offers whose deadline has passed, and offer their beds to the next; the sweep calls it.

    Returns how many offers ended or were followed by another.
    """
    return offers_expire() + offers_follow()


def offers_expire() -> int:
    """End the open offers whose deadline has passed, and return how many."""
    late = WaitingOffer.objects.filter(state=OfferState.OPEN, deadline__lte=timezone.now())
    count = 0
    for offer in list(late.select_related("placement")):
        with transaction.atomic():
            lock_placement(offer.placement)
            still = late.filter(pk=offer.pk)  # staff may have extended it
            if still.update(state=OfferState.EXPIRED, answered_at=timezone.now()):
                count += 1
                found = WaitingOffer.objects.select_related(
                    "student", "placement__organisation"
                ).get(pk=offer.pk)
                _audit(None, "ended an unanswered offer", found)
    return count


def offers_follow() -> int:
    """Offer the beds that became free to the next students, and return how many.

    These are beds that were declined or not answered, and the old beds of students who moved.
    """
    states = (OfferState.DECLINED, OfferState.EXPIRED, OfferState.ACCEPTED)
    ended = WaitingOffer.objects.filter(state__in=states, was_followed=False)
    keys = list(ended.order_by("pk").values_list("pk", flat=True))
    return sum(_follow(key) for key in keys)


@transaction.atomic
def _follow(key: int) -> bool:
    """Make the offer that follows another, once; return True if one was made."""
    offer = WaitingOffer.objects.select_related("placement", "room", "event").get(pk=key)
    placement = lock_placement(offer.placement)
    room = offer.room
    listed = waiting_list_of(placement)
    if not WaitingOffer.objects.filter(pk=key, was_followed=False).update(was_followed=True):
        return False
    following, is_made = gettext("Automatic offers are off."), False
    if offer.state == OfferState.ACCEPTED:
        room = _room_left(offer)
        if room is None:
            return False
    if not listed.is_automatic:
        pass
    elif room is None or not placement.is_published:
        following = gettext("The room is not there or not published any more.")
    else:
        try:
            with transaction.atomic():
                made = offer_make(
                    user=None,
                    placement=placement,
                    room=room,
                    number=None,
                    hours=listed.hours,
                )
            following, is_made = (
                gettext("Offered to %(student)s.") % {"student": made.student.label},
                True,
            )
        except HousingError as error:
            following = str(error)
    WaitingOffer.objects.filter(pk=key).update(following=following[:MAX_WHY])
    return is_made


def _room_left(offer: WaitingOffer) -> Room | None:
    """Return the room that a student left for an offered bed; None if nobody left one."""
    event = offer.event
    if event is None or event.undone_at is not None or not event.before:
        return None
    key = event.before[0][1]
    return Room.objects.filter(pk=key).first() if key != offer.room_id else None


@transaction.atomic
def move_wish_save(
    *, user: User | None, placement: Placement, number: int, hall: str = "", beds: int = 0
) -> MoveWish:
    """Let a student with a bed wait for another one; a second wish replaces the first.

    The student keeps the bed until another one is accepted. ``user`` is None for the student.

    Raises HousingError if the placement is not published, the student has no bed, or no room has
    the hall and the number of beds.
    """
    placement = lock_placement(placement)
    if placement.is_pairs or not placement.is_published:
        raise HousingError(_("Nobody can wait for another bed now."))
    place = placement.places.with_bed().filter(number=number).select_related("student").first()
    if place is None:
        raise HousingError(
            _("S-%(number)s has no bed, and is on the waiting list or not in this placement.")
            % {"number": number},
            "student",
        )
    rooms = placement.buildings.rooms.all()
    rooms = rooms.filter(hall=hall) if hall else rooms
    if not (rooms.filter(capacity=beds) if beds else rooms).exists():
        raise HousingError(_("There is no such room. Choose another hall or kind."), "hall")
    wish, _is_new = MoveWish.objects.update_or_create(
        placement=placement,
        student=place.student,
        defaults={
            "hall": hall,
            "beds": beds,
            "created_at": timezone.now(),
            "created_by": user,
            "event": None,
        },
    )
    audit(
        user,
        "added a wish for another bed",
        placement,
        organisation=placement.organisation,
        student=place.label,
        wish=wish.words,
    )
    return wish


@transaction.atomic
def move_wish_remove(*, user: User | None, placement: Placement, number: int) -> None:
    """Take a student with a bed off the waiting list, and withdraw the open offer.

    Raises HousingError if the student does not wait for another bed.
    """
    placement = lock_placement(placement)
    wishes = MoveWish.objects.filter(placement=placement, student__number=number)
    if not wishes.waiting().delete()[0]:
        raise HousingError(_("The wish for another bed was removed or fulfilled meanwhile."))
    offers_withdraw(
        placement.waiting_offers.filter(student__number=number),
        gettext("The student does not wait for another bed any more."),
    )
    audit(
        user,
        "removed a wish for another bed",
        placement,
        organisation=placement.organisation,
        student=f"S-{number}",
    )


def reachable_words(offer: WaitingOffer) -> str:
    """Return how the student gets to know of an offer, in one sentence."""
    if address_of(offer.student):
        return gettext("%(student)s gets a mail with the personal link.") % {
            "student": offer.student.label
        }
    return gettext("%(student)s has no e-mail. Phone the student, and record the answer.") % {
        "student": offer.student.label
    }
