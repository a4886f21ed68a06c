"""Content of a student's page: nothing before the rooms are published, no secret of anybody else.

The page never says who requested the student, except of a request that is mutual, and never an
original id. A roommate's contact is shown only while both live together and both agreed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from webapp.accounts.models import Organisation
from webapp.cohorts.models import Student
from webapp.cohorts.naming import Identity
from webapp.housing.models import (
    OrderRule,
    Place,
    Placement,
    RoommateRequest,
    Term,
    WaitingOffer,
)
from webapp.housing.selectors.publication import current_first
from webapp.housing.selectors.suites import rooms_of_suite
from webapp.housing.selectors.waiting import place_in_line, waiting_list_of
from webapp.housing.stays import ALWAYS, place_stay
from webapp.identity.students import SignedInStudent
from webapp.residents.mails import moment_in_words
from webapp.residents.models import AskState, ChangeAsk, ContactConsent, ResidentPage
from webapp.residents.page_parts import students_with_page

SHOWN_OFFERS = 5


@dataclass(frozen=True, slots=True)
class Roommate:
    """A roommate: the name, whether each agreed to share the contact, and the contact if both did.

    ``name`` is "" if the office knows none.
    """

    number: int
    name: str
    pronouns: str
    agreed: bool
    email: str = ""
    contact: str = ""

    @property
    def has_contact(self) -> bool:
        """Return True if both agreed."""
        return bool(self.email or self.contact)


@dataclass(frozen=True, slots=True)
class OwnRequest:
    """A request that the student made, and its state: "together", "mutual", "apart" or another.

    ``name`` is what may be shown of the requested person: the name if both asked for each other or
    live together, else what the student wrote.
    """

    name: str
    state: str


@dataclass(frozen=True, slots=True)
class ShownOffer:
    """An offered bed as the student sees it: the people who live there by name, and the deadline.

    ``names`` has "" for a roommate whose name the office does not know.
    """

    offer: WaitingOffer
    names: Sequence[str]
    until: str


@dataclass(frozen=True, slots=True)
class Line:
    """A student's place on the waiting list, its length, and the rule of its order in words."""

    place: int
    length: int
    rule: str


def _first_day(place: Place) -> date | None:
    day = place_stay(place, place.placement.term).first
    return None if day == ALWAYS.first else day


def _last_day(place: Place) -> date | None:
    day = place_stay(place, place.placement.term).last
    return None if day == ALWAYS.last else day


@dataclass(frozen=True, slots=True)
class OtherTerm:
    """A student's place in a published placement for another term; ``names`` are the roommates.

    ``names`` has "" for a roommate whose name the office does not know.
    """

    place: Place
    names: Sequence[str]

    @property
    def term(self) -> Term | None:
        """The term of the placement."""
        return self.place.placement.term

    @property
    def first_day(self) -> date | None:
        """The first day of the bed, if the office set one."""
        return _first_day(self.place)

    @property
    def last_day(self) -> date | None:
        """The last day of the bed, if the office set one."""
        return _last_day(self.place)


@dataclass(frozen=True, slots=True)
class Home:
    """The content of a personal page, once the rooms are published."""

    placement: Placement
    term: Term | None
    place: Place
    roommates: Sequence[Roommate]
    suite_mates: Sequence[Roommate]
    requests: Sequence[OwnRequest]
    asks: Sequence[ChangeAsk]
    line: Line | None
    offers: Sequence[ShownOffer]
    other_terms: Sequence[OtherTerm] = ()

    @property
    def first_day(self) -> date | None:
        """The first day of the bed, if the office set one."""
        return _first_day(self.place)

    @property
    def last_day(self) -> date | None:
        """The last day of the bed, if the office set one."""
        return _last_day(self.place)

    @property
    def open_ask(self) -> ChangeAsk | None:
        """The change that the student asked for and nobody decided."""
        return next((ask for ask in self.asks if ask.is_open), None)


def organisation_of(page: ResidentPage) -> Organisation:
    """Return the organisation of a page."""
    return page.student.cohort.organisation


def published_places(student: Student) -> list[Place]:
    """Return the places of a student in published placements: of today, then of later terms.

    Places of terms that are over come last.
    """
    places = Place.objects.select_related("placement__term", "room").present()
    return current_first(places.filter(student=student, placement__published_at__isnull=False))


def published_place(student: Student) -> Place | None:
    """Return the place of a student in the published placement of the present or the next term.

    None if the student withdrew, or if nothing is published.
    """
    return next(iter(published_places(student)), None)


def home_of(page: ResidentPage) -> Home | None:
    """Return what a page shows; None before publishing, and for somebody who withdrew."""
    places = published_places(page.student)
    if not places:
        return None
    place, *others = places
    mates = _roommates(page.student, mates_of(place)) if place.room_id else []
    in_suite = _roommates(page.student, suite_mates_of(place)) if has_suite(place) else []
    return Home(
        placement=place.placement,
        term=place.placement.term,
        place=place,
        roommates=mates,
        suite_mates=in_suite,
        requests=_requests(
            page.student, {mate.number for mate in mates}, {mate.number for mate in in_suite}
        ),
        asks=list(page.student.change_asks.filter(placement=place.placement)),
        line=_line(place),
        offers=[_shown(offer) for offer in _offers(page.student)[:SHOWN_OFFERS]],
        other_terms=[_other_term(one) for one in others],
    )


def _other_term(place: Place) -> OtherTerm:
    mates = [] if place.room_id is None else mates_of(place).select_related("student")
    return OtherTerm(place, [shown_name(mate.student) for mate in mates])


def offer_shown(student: Student, offer_id: int) -> ShownOffer | None:
    """Return an offer of a student in a published placement; None for any other."""
    offer = _offers(student).filter(pk=offer_id).first()
    return _shown(offer) if offer is not None else None


def _offers(student: Student) -> QuerySet[WaitingOffer]:
    places = Place.objects.filter(student=student, placement__published_at__isnull=False).present()
    rows = WaitingOffer.objects.filter(student=student, placement__in=places.values("placement"))
    return rows.select_related("room", "student", "placement__organisation")


def _shown(offer: WaitingOffer) -> ShownOffer:
    names: list[str] = []
    if offer.is_open and offer.room_id is not None:
        places = Place.objects.filter(placement=offer.placement_id, room=offer.room_id)
        living = places.select_related("student").order_by("number")
        names = [shown_name(one.student) for one in living]
    until = moment_in_words(offer.deadline, offer.placement.organisation)
    return ShownOffer(offer, names, until)


def _line(place: Place) -> Line | None:
    found = None if place.room_id else place_in_line(place.placement, place.number)
    if found is None:
        return None
    listed = waiting_list_of(place.placement)
    rule = {
        OrderRule.ADDED: _("Students who were added first come first."),
        OrderRule.NEEDS: _("Students with needs come first, then those who were added first."),
        OrderRule.COLUMN: _("The list is ordered by “%(column)s”.") % {"column": listed.column},
        OrderRule.LOTTERY: _("The order was drawn by lottery, with the seed “%(seed)s”.")
        % {"seed": listed.seed},
    }
    return Line(*found, rule[OrderRule(listed.rule)])


def mates_of(place: Place) -> QuerySet[Place]:
    """Return the places of a student's roommates: people of the room on one of the own days."""
    return _others_there(place).filter(room=place.room_id)


def has_suite(place: Place) -> bool:
    """Return True if a student lives in a room of a suite."""
    return place.room is not None and bool(place.room.suite)


def suite_mates_of(place: Place) -> QuerySet[Place]:
    """Return the places of the people in other rooms of a student's suite on one of the own days.

    The place must have a room; nobody else lives there if the room is in no suite.
    """
    own = place.room
    if own is None or not own.suite:
        return Place.objects.none()
    rooms = [room.pk for room in rooms_of_suite(own) if room.pk != own.pk]
    return _others_there(place).filter(room__in=rooms)


def contacts_of(place: Place) -> QuerySet[Place]:
    """Return the places of everybody with whom a student may share the contact: room and suite."""
    return mates_of(place) | suite_mates_of(place) if has_suite(place) else mates_of(place)


def _others_there(place: Place) -> QuerySet[Place]:
    """Return the places of other people of a placement who have a bed on one of the own days."""
    own = place_stay(place, None)
    others = Place.objects.filter(
        Q(arrives_on=None) | Q(arrives_on__lte=own.last),
        Q(leaves_on=None) | Q(leaves_on__gte=own.first),
        placement=place.placement_id,
        room__isnull=False,
    )
    return others.exclude(pk=place.pk).order_by("number")


def _roommates(student: Student, places: QuerySet[Place]) -> list[Roommate]:
    """Return the people of some places as a student sees them."""
    read = places.select_related("student__resident_page")
    others = [one.student for one in read.defer("student__answers", "student__attributes")]
    keys = [other.pk for other in others]
    given = set(
        ContactConsent.objects.filter(student=student, roommate__in=keys).values_list(
            "roommate", flat=True
        )
    )
    received = set(
        ContactConsent.objects.filter(student__in=keys, roommate=student).values_list(
            "student", flat=True
        )
    )
    return [_roommate(other, other.pk in given, other.pk in received) for other in others]


def _roommate(other: Student, agreed: bool, agreed_too: bool) -> Roommate:
    name = shown_name(other)
    if not (agreed and agreed_too):
        return Roommate(other.number, name, other.pronouns, agreed)
    page = getattr(other, "resident_page", None)
    contact = page.contact if page is not None else ""
    return Roommate(other.number, name, other.pronouns, agreed, other.email.strip(), contact)


def shown_name(student: Student) -> str:
    """Return the name of a student for roommates, without any id."""
    own = (student.number, "", student.name, student.preferred, "", "")
    return " ".join(Identity(*own).shown.split())


def _requests(student: Student, mates: set[int], in_suite: set[int]) -> list[OwnRequest]:
    made = list(student.requests_made.select_related("target").order_by("pk"))
    targets = [one.target_id for one in made if one.target_id is not None]
    back = RoommateRequest.objects.filter(
        student__in=targets, target=student, is_ignored=False
    ).values_list("student", flat=True)
    mutual = set(back)
    return [_request(one, mates, in_suite, mutual) for one in made]


def _request(
    one: RoommateRequest, mates: set[int], in_suite: set[int], mutual: set[int]
) -> OwnRequest:
    target = one.target
    if one.is_ignored:
        return OwnRequest(one.written, "left_out")
    if target is None:
        return OwnRequest(one.written, "unknown")
    if target.number in mates:
        return OwnRequest(shown_name(target), "together")
    if target.number in in_suite:
        return OwnRequest(shown_name(target), "suite")
    if target.pk in mutual:
        return OwnRequest(shown_name(target), "mutual")
    return OwnRequest(one.written, "apart")


def page_student(organisation: Organisation, signed_in: SignedInStudent) -> Student | None:
    """Return the student whom a provider vouches for, if the page of one shows something.

    It is the student of the latest published placement, else of another part of the page.
    """
    number = signed_in.number.strip()
    if signed_in.organisation_id != organisation.pk or not number:
        return None
    places = Place.objects.select_related("student").filter(
        student__original_id=number,
        placement__cohort__organisation=organisation,
        placement__cohort__ids_made=False,
        placement__published_at__isnull=False,
    )
    place = places.present().order_by("-placement__published_at").first()
    if place is not None:
        return place.student
    own = Student.objects.filter(
        students_with_page(),
        original_id=number,
        cohort__organisation=organisation,
        cohort__ids_made=False,
    )
    return own.order_by("-pk").first()


def asks_of(placement: Placement) -> QuerySet[ChangeAsk]:
    """Return the changes that students asked for, open ones first, oldest first among them."""
    rows = placement.change_asks.select_related("student", "decided_by")
    return rows.defer("student__answers", "student__attributes").order_by("pk")


def open_asks(placement_id: UUID) -> int:
    """Return how many changes wait for a decision."""
    return ChangeAsk.objects.filter(placement=placement_id, state=AskState.OPEN).count()
