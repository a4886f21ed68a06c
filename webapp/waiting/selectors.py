"""Pages of waiting lists: students in order, free beds, offers, and the next student for a bed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Prefetch, QuerySet

from webapp.cohorts.addresses import address_of
from webapp.cohorts.models import Student
from webapp.common.formats import counted
from webapp.housing.models import OfferState, OrderRule, Placement, Room, WaitingOffer
from webapp.housing.selectors.offers import candidates
from webapp.housing.selectors.placements import PlacementRooms, RoomCard
from webapp.housing.selectors.waiting import waiting_list_of, waiting_order
from webapp.housing.services.checks import rooms_taken_elsewhere
from webapp.residents.models import ResidentMail

SHOWN_ROOMS = 60
SHOWN_OFFERS = 100
SHOWN_STUDENTS = 200
_SAID_NO = (OfferState.DECLINED, OfferState.EXPIRED)


@dataclass(frozen=True, slots=True)
class Next:
    """The next student for a bed, and the students before, each with the reason against it.

    ``number`` is None if there is nobody; ``sentence`` then says why.
    """

    number: int | None
    skipped: Sequence[tuple[int, str]] = ()
    sentence: str = ""


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


def next_student(placement: Placement, room: Room) -> Next:
    """Return the next student of the waiting list who may live in a room with a free bed.

    Students who declined a bed of this room, or did not answer, are not asked again; nor are
    students without an e-mail if the list skips them.
    """
    rooms = PlacementRooms(placement)
    card = next((card for card in rooms.cards() if card.room.pk == room.pk), None)
    if card is None:
        return Next(None, sentence="This room is not in the building list any more.")
    if not card.free:
        return Next(None, sentence=f"{room} has no free bed to offer.")
    if rooms_taken_elsewhere(placement, [room.pk]):
        return Next(None, sentence=f"{room} is taken by another published cohort.")
    refused = _refusals(placement, room)
    skipped: list[tuple[int, str]] = []
    for number, reason in candidates(rooms, card):
        why = reason or refused.get(number, "")
        if not why:
            return Next(number, skipped)
        skipped.append((number, why))
    words = "Nobody waits for a bed." if not skipped else "Nobody on the list may live there."
    return Next(None, skipped, words)


def _refusals(placement: Placement, room: Room) -> dict[int, str]:
    """Return why students are not asked, other than by the rules of the room."""
    asked = placement.waiting_offers.filter(room=room, state__in=_SAID_NO)
    states = dict(asked.order_by("pk").values_list("student__number", "state"))
    words = {OfferState.DECLINED: "declined a bed there", OfferState.EXPIRED: "did not answer"}
    found = {number: f"S-{number} {words[OfferState(s)]}." for number, s in states.items()}
    if waiting_list_of(placement).skips_unreachable:
        for student in _waiting_students(placement):
            if not address_of(student):
                found[student.number] = f"S-{student.number} has no e-mail."
    return found


def _waiting_students(placement: Placement) -> QuerySet[Student]:
    places = placement.places.without_bed().values("student")
    return Student.objects.filter(pk__in=places).only("number", "email", "attributes")


def offers_of(placement: Placement) -> QuerySet[WaitingOffer]:
    """Return the offers of a placement, latest first, with their students and mails."""
    rows = placement.waiting_offers.select_related(
        "student", "room", "event", "offered_by", "answered_by"
    )
    mails = ResidentMail.objects.defer("text", "subject", "address").order_by("pk")
    return rows.defer("student__answers").prefetch_related(Prefetch("mails", queryset=mails))


def mail_words(offer: WaitingOffer) -> str:
    """Return what became of the last mail of an offer, in words."""
    last = next(iter(reversed(list(offer.mails.all()))), None)
    if last is None:
        return "No e-mail: phone the student"
    if last.state == ResidentMail.SENT:
        return "Mail sent"
    if last.state == ResidentMail.FAILED:
        return f"Mail failed: {last.error}"
    return "Mail on its way"


def needs_a_call(offer: WaitingOffer) -> bool:
    """Return True if an open offer reached nobody by mail."""
    return offer.is_open and mail_words(offer).startswith(("No e-mail", "Mail failed"))


def order_in_words(placement: Placement) -> str:
    """Return the rule of the order in words."""
    listed = waiting_list_of(placement)
    if listed.rule == OrderRule.LOTTERY:
        return f"By lottery with the seed “{listed.seed}”"
    if listed.rule == OrderRule.COLUMN:
        first = f", first {', '.join(listed.first_values)}" if listed.first_values else ""
        return f"By {listed.column}{first}, then by the date added"
    if listed.rule == OrderRule.NEEDS:
        return "Students with needs first, then by the date added"
    return "By the date added"


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
        "free": found[:SHOWN_ROOMS],
        "n_free": len(found),
        "n_beds": sum(card.free for card in free),
        "query": query,
        "offers": [(offer, mail_words(offer), needs_a_call(offer)) for offer in open_offers],
        "ended": ended[:SHOWN_OFFERS],
        "n_ended": len(ended),
        "calls": counted(sum(map(needs_a_call, open_offers)), "student", "students"),
        "n_calls": sum(map(needs_a_call, open_offers)),
    }


def free_rooms(placement: Placement) -> list[RoomCard]:
    """Return the rooms with a free bed that no other published cohort has."""
    rooms = PlacementRooms(placement)
    taken = rooms_taken_elsewhere(placement)
    return [card for card in rooms.cards() if card.free and card.room.pk not in taken]
