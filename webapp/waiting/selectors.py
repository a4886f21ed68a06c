"""Pages of waiting lists: students in order, free beds, offers, and the next student for a bed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet
from django.utils.translation import gettext

from webapp.cohorts.addresses import address_of
from webapp.cohorts.models import Student
from webapp.common.formats import counted
from webapp.housing.models import OfferState, OrderRule, Place, Placement, Room, WaitingOffer
from webapp.housing.scores import Scores
from webapp.housing.selectors.offers import candidates
from webapp.housing.selectors.placements import PlacementRooms, RoomCard, free_in_words
from webapp.housing.selectors.waiting import in_order, waiting_list_of, waiting_order
from webapp.housing.services.checks import forbidden_numbers, rooms_taken_elsewhere
from webapp.residents.models import ResidentMail
from webapp.residents.selectors import published_places
from webapp.waiting.models import MoveWish

SHOWN_ROOMS = 60
SHOWN_OFFERS = 100
SHOWN_STUDENTS = 200
_SAID_NO = (OfferState.DECLINED, OfferState.EXPIRED)


@dataclass(frozen=True, slots=True)
class Next:
    """The next student for a bed, and the students before, each with the reason against it.

    ``number`` is None if there is nobody; ``sentence`` then says why. ``is_extra`` is True if all
    normal beds of the room are taken, ``leaves`` the room of a student who lives elsewhere.
    """

    number: int | None
    skipped: Sequence[tuple[int, str]] = ()
    sentence: str = ""
    is_extra: bool = False
    leaves: str = ""


@dataclass(frozen=True, slots=True)
class Waiter:
    """One student on the waiting list; ``turn`` is not 0 if staff moved the student by hand."""

    place: int
    number: int
    turn: int
    added_at: Any
    is_reachable: bool
    value: str
    offers: Sequence[WaitingOffer] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class PartnerMatch:
    """Two students without a partner who fit each other, and the score of their pair, nats."""

    number: int
    partner: int
    score: float


def next_student(placement: Placement, room: Room) -> Next:
    """Return the next student of the waiting list who may live in a room with a free bed.

    Students who declined a bed of this room, or did not answer, are not asked again; nor are
    students without an e-mail if the list skips them.
    """
    rooms = PlacementRooms(placement)
    card = next((card for card in rooms.cards() if card.room.pk == room.pk), None)
    if card is None:
        return Next(None, sentence=gettext("This room is not in the building list any more."))
    if not (card.free or card.free_extra):
        return Next(None, sentence=gettext("%(room)s has no free bed to offer.") % {"room": room})
    if rooms_taken_elsewhere(placement, [room.pk]):
        return Next(
            None,
            sentence=gettext("%(room)s is taken by another published cohort.") % {"room": room},
        )
    refused = _refusals(placement, room)
    skipped: list[tuple[int, str]] = []
    for number, reason in candidates(rooms, card, movers=movers_for(placement, room)):
        why = reason or refused.get(number, "")
        if not why:
            return Next(number, skipped, is_extra=not card.free, leaves=_room_of(rooms, number))
        skipped.append((number, why))
    words = (
        gettext("Nobody waits for a bed.")
        if not skipped
        else gettext("Nobody on the list may live there.")
    )
    return Next(None, skipped, words)


def _room_of(rooms: PlacementRooms, number: int) -> str:
    key = rooms.where.get(number)
    return next((room.label for room in rooms.rooms if room.pk == key), "")


def move_wishes(placement: Placement) -> list[MoveWish]:
    """Return the wishes of students with a bed for another one, in the order of the list."""
    places = {place.student_id: place for place in placement.places.with_bed()}
    rows = placement.move_wishes.waiting().filter(student__in=places)
    wishes = {
        wish.student.number: wish
        for wish in rows.select_related("student").defer("student__answers")
    }
    order = in_order(
        placement,
        [{"number": n, "turn": 0, "since": wish.created_at} for n, wish in wishes.items()],
    )
    return [wishes[number] for number in order]


def movers_for(placement: Placement, room: Room) -> list[int]:
    """Return the students who live elsewhere and whose wish is met by a room, in order."""
    inside = set(placement.places.filter(room=room).values_list("number", flat=True))
    return [
        wish.student.number
        for wish in move_wishes(placement)
        if wish.student.number not in inside and wish.is_met_by(room)
    ]


def movers(placement: Placement) -> list[tuple[MoveWish, Room]]:
    """Return the wishes for another bed with the rooms where their students live."""
    wishes = move_wishes(placement)
    numbers = [wish.student.number for wish in wishes]
    places = placement.places.filter(number__in=numbers).select_related("room")
    rooms = {place.number: place.room for place in places if place.room is not None}
    return [(wish, rooms[wish.student.number]) for wish in wishes]


def movable_place(student: Student, placement_id: UUID | None = None) -> Place | None:
    """Return the place of a student who has a bed of a published placement; None for others.

    Of several placements it is that of the present term, or the one with a key.
    """
    found = published_places(student)
    place = next((p for p in found if placement_id in (None, p.placement_id)), None)
    if place is None or place.room_id is None or place.placement.is_pairs:
        return None
    return place


def choices_of_rooms(placement: Placement) -> tuple[list[str], list[int]]:
    """Return the halls, and the numbers of beds, that the rooms of a placement have."""
    rows = list(placement.buildings.rooms.values_list("hall", "capacity"))
    return list(dict.fromkeys(hall for hall, _ in rows)), sorted({beds for _, beds in rows})


def _refusals(placement: Placement, room: Room) -> dict[int, str]:
    """Return why students are not asked, other than by the rules of the room."""
    asked = placement.waiting_offers.filter(room=room, state__in=_SAID_NO)
    states = dict(asked.order_by("pk").values_list("student__number", "state"))
    words = {
        OfferState.DECLINED: gettext("S-%(number)s declined a bed there."),
        OfferState.EXPIRED: gettext("S-%(number)s did not answer."),
    }
    found = {
        number: words[OfferState(state)] % {"number": number} for number, state in states.items()
    }
    if waiting_list_of(placement).skips_unreachable:
        for student in _waiting_students(placement):
            if not address_of(student):
                found[student.number] = gettext("S-%(number)s has no e-mail.") % {
                    "number": student.number
                }
    return found


def _waiting_students(placement: Placement) -> QuerySet[Student]:
    places = placement.places.without_bed().values("student")
    movers = placement.move_wishes.waiting().values("student")
    students = Student.objects.filter(Q(pk__in=places) | Q(pk__in=movers))
    return students.only("number", "email", "attributes")


def offers_of(placement: Placement) -> QuerySet[WaitingOffer]:
    """Return the offers of a placement, latest first, with their students and mails."""
    rows = placement.waiting_offers.select_related(
        "student", "room", "event", "offered_by", "answered_by"
    )
    mails = ResidentMail.objects.defer("text", "subject", "address").order_by("pk")
    return rows.defer("student__answers").prefetch_related(Prefetch("mails", queryset=mails))


def _last_mail(offer: WaitingOffer) -> ResidentMail | None:
    return next(iter(reversed(list(offer.mails.all()))), None)


def mail_words(offer: WaitingOffer) -> str:
    """Return what became of the last mail of an offer, in words."""
    last = _last_mail(offer)
    if last is None:
        return gettext("No e-mail: phone the student")
    if last.state == ResidentMail.SENT:
        return gettext("Mail sent")
    if last.state == ResidentMail.FAILED:
        return gettext("Mail failed: %(error)s") % {"error": last.error}
    return gettext("Mail on its way")


def needs_a_call(offer: WaitingOffer) -> bool:
    """Return True if an open offer reached nobody by mail."""
    last = _last_mail(offer)
    return offer.is_open and (last is None or last.state == ResidentMail.FAILED)


def order_in_words(placement: Placement) -> str:
    """Return the rule of the order in words."""
    listed = waiting_list_of(placement)
    if listed.rule == OrderRule.LOTTERY:
        return gettext("By lottery with the seed “%(seed)s”") % {"seed": listed.seed}
    if listed.rule == OrderRule.COLUMN:
        words = (
            gettext("By %(column)s, first %(values)s, then by the date added")
            if listed.first_values
            else gettext("By %(column)s, then by the date added")
        )
        return words % {"column": listed.column, "values": ", ".join(listed.first_values)}
    if listed.rule == OrderRule.NEEDS:
        return gettext("Students with needs first, then by the date added")
    return gettext("By the date added")


def waiters(placement: Placement, offers: Iterable[WaitingOffer]) -> list[Waiter]:
    """Return the students on the waiting list, in order, with their offers."""
    places = {place.number: place for place in placement.places.without_bed()}
    order = waiting_order(placement)
    students = {student.number: student for student in _waiting_students(placement)}
    made: dict[int, list[WaitingOffer]] = {}
    for offer in offers:
        made.setdefault(offer.student.number, []).append(offer)
    column = _shown_column(placement)
    return [
        Waiter(
            k + 1,
            number,
            places[number].turn,
            places[number].added_at,
            bool(address_of(students[number])),
            students[number].attributes.get(column, "") if column else "",
            made.get(number, ()),
        )
        for k, number in enumerate(order)
    ]


def _shown_column(placement: Placement) -> str:
    listed = waiting_list_of(placement)
    return listed.column if listed.rule == OrderRule.COLUMN else ""


def waiting_context(placement: Placement, query: str) -> Mapping[str, Any]:
    """Return the context of the page of a waiting list."""
    offers = list(offers_of(placement)[: 10 * SHOWN_OFFERS])
    people = waiters(placement, offers)
    free = free_rooms(placement) if placement.is_published and not placement.is_pairs else []
    found = [card for card in free if query.casefold() in card.room.label.casefold()]
    open_offers = [offer for offer in offers if offer.is_open]
    ended = [offer for offer in offers if not offer.is_open]
    return {
        "listed": waiting_list_of(placement),
        "order_words": order_in_words(placement),
        "column": _shown_column(placement),
        "waiting": people[:SHOWN_STUDENTS],
        "n_waiting": len(people),
        "movers": movers(placement),
        "free": found[:SHOWN_ROOMS],
        "n_free": len(found),
        "beds_free": free_in_words(free),
        "query": query,
        "offers": [(offer, mail_words(offer), needs_a_call(offer)) for offer in open_offers],
        "ended": ended[:SHOWN_OFFERS],
        "n_ended": len(ended),
        "calls": counted(sum(map(needs_a_call, open_offers)), "student"),
        "matches": partner_matches(placement) if placement.is_pairs else [],
        "n_calls": sum(map(needs_a_call, open_offers)),
    }


def partner_matches(placement: Placement) -> list[PartnerMatch]:
    """Return who of the students without a partner fit each other, in a placement of pairs.

    The first student of the list gets the best of the others, then the next one who is left.
    Students who are never to be paired, who differ in a column in which roommates agree, or who
    stay single by a rule are not matched.
    """
    order = [n for n in waiting_order(placement) if n not in placement.singles][:SHOWN_STUDENTS]
    if len(order) < 2:
        return []
    table = Scores(placement).between(order, order)
    students = placement.cohort.students.filter(number__in=order).defer("answers")
    answers = {
        student.number: tuple(student.attributes.get(column, "") for column in placement.same)
        for student in students
    }
    forbidden = forbidden_numbers(placement)
    found, left = [], list(range(len(order)))
    while left:
        one = left.pop(0)
        fits = [
            k
            for k in left
            if answers[order[k]] == answers[order[one]]
            and frozenset((order[k], order[one])) not in forbidden
        ]
        if fits:
            other = max(fits, key=lambda k: float(table[one, k]))
            left.remove(other)
            found.append(PartnerMatch(order[one], order[other], float(table[one, other])))
    return found


def free_rooms(placement: Placement) -> list[RoomCard]:
    """Return the rooms with a free bed that no other published cohort has; extra beds come last."""
    rooms = PlacementRooms(placement)
    taken = rooms_taken_elsewhere(placement)
    free = [
        card
        for card in rooms.cards()
        if (card.free or card.free_extra) and card.room.pk not in taken
    ]
    return sorted(free, key=lambda card: not card.free)
