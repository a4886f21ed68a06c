"""Recipients of a placement's letters, their texts, and the problems that prevent sending."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.cohorts.addresses import address_of
from webapp.cohorts.models import Student
from webapp.common import formats
from webapp.housing.models import Placement, Room, SuiteKey
from webapp.housing.models.building import kind_in_words
from webapp.housing.rules import needs_of_student
from webapp.housing.selectors.suites import rooms_of_suite
from webapp.housing.stays import ALWAYS, Stay, place_stay, stay_of_term, stays_in
from webapp.letters.fields import FIELDS, MAY_BE_EMPTY, fields_in, fill, unknown_fields
from webapp.letters.models import Contact, Letter, LetterTemplate
from webapp.translation.lazy import gettext_lazy

SHOWN = 12  # students named by a problem
PAGE = "[page]"  # becomes the personal link as the letter leaves, so that no link is stored
NO_NAME = gettext_lazy("a student whose name we do not have")


@dataclass(frozen=True, slots=True)
class Recipient:
    """A student with a room: the values of the fields, and the place reported by a letter.

    ``address`` is the e-mail, or "" if there is no valid one.
    """

    student: Student
    values: dict[str, str]
    place: list[Any]
    roommates: tuple[Student, ...]
    address: str

    @property
    def number(self) -> int:
        """The number on screen."""
        return self.student.number


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that affects sending, with its fix and the students concerned.

    ``blocks`` means that nothing can be sent until it is solved.
    """

    sentence: str
    fix: str = ""
    students: tuple[int, ...] = ()
    blocks: bool = False

    @property
    def named(self) -> str:
        """The students in words, as many as fit."""
        shown = ", ".join(f"S-{number}" for number in self.students[:SHOWN])
        more = len(self.students) - SHOWN
        return (
            _("%(shown)s and %(more)s more") % {"shown": shown, "more": f"{more:,}"}
            if more > 0
            else shown
        )


def recipients_of(placement: Placement, template: LetterTemplate) -> list[Recipient]:
    """Return the students of a placement who have a room, by number on screen."""
    students = placement.cohort.students.defer("answers").in_bulk()
    rooms = {room.pk: room for room in placement.buildings.rooms.all()}
    places = placement.places.with_bed().order_by("number")
    beds = list(places.values_list("student_id", "room_id", "bed"))
    stays, usual = stays_in(placement), stay_of_term(placement.term)
    words_of = cache(lambda key: _words_of(rooms[key]))
    together: dict[int, list[Student]] = defaultdict(list)
    in_suite: dict[SuiteKey, list[tuple[int, Student]]] = defaultdict(list)
    for student, room, _rest in beds:
        together[room].append(students[student])
        suite = rooms[room].suite_key
        if suite is not None:
            in_suite[suite].append((room, students[student]))
    found = []
    for student, room, bed in beds:
        own = stays.get(students[student].number)
        others = together[room]
        suite = rooms[room].suite_key
        beside = [one for key, one in in_suite[suite] if key != room] if suite is not None else []
        if stays:
            days = own or usual
            others, beside = (
                [one for one in people if days.overlaps(stays.get(one.number, usual))]
                for people in (others, beside)
            )
        seat = _Seat(rooms[room], words_of(room), bed, own, own or usual, tuple(beside))
        found.append(_recipient(placement, template, students[student], seat, others))
    return found


@dataclass(frozen=True, slots=True)
class _Seat:
    """A bed, its days, the student's own days if they differ from the term, and the suite mates.

    ``words`` are the values of the fields of its room.
    """

    room: Room
    words: dict[str, str]
    bed: int | None
    own: Stay | None
    stay: Stay
    suite_mates: tuple[Student, ...] = ()


def _recipient(
    placement: Placement,
    template: LetterTemplate,
    student: Student,
    seat: _Seat,
    together: Sequence[Student],
) -> Recipient:
    room, bed = seat.room, seat.bed
    mates = tuple(other for other in together if other is not student)
    names = [_one_line(mate.name) or str(NO_NAME) for mate in mates]
    contacts = [mate.email for mate in mates if mate.email and _may_be_named(mate, template)]
    where = seat.words | {"bed": str(bed)}
    if placement.is_pairs:  # a pair has no room yet
        where = dict.fromkeys(where, "")
    values = {
        "name": _one_line(student.name),
        "id": _one_line(student.original_id),
        **where,
        "first day": _day(seat.stay.first),
        "last day": _day(seat.stay.last),
        "roommates": formats.listed(names) or _nobody(placement),
        "suite mates": formats.listed(
            [_one_line(one.name) or str(NO_NAME) for one in seat.suite_mates]
        ),
        "contacts": ", ".join(contacts),
        "cohort": placement.cohort.name,
        "page": PAGE,
        "organisation": placement.organisation.name,
    }
    numbers = sorted(mate.number for mate in mates)
    beside = _named_suite_mates(template, (mate.number for mate in seat.suite_mates))
    told = [room.pk, bed, numbers, *_told_days(seat.own), *beside]
    return Recipient(student, values, told, mates, address_of(student))


def _words_of(room: Room) -> dict[str, str]:
    """Return the values of the fields of a room, in the language of staff."""
    return {
        "hall": room.hall,
        "floor": room.floor,
        "room": room.name,
        "suite": room.suite_in_words,
        "place": room.place_in_words if room.suite else _("room %(room)s") % {"room": room.name},
        "kind": kind_in_words(room.capacity),
    }


def _nobody(placement: Placement) -> str:
    """Return the words of a letter to a student without roommates."""
    if placement.is_pairs:
        return _("nobody yet")
    return _("nobody: the room is yours alone for now")


def _named_suite_mates(template: LetterTemplate, numbers: Iterable[int]) -> list[dict[str, Any]]:
    """Return the suite mates as a letter keeps them; nothing if the letter does not name them."""
    found = sorted(numbers)
    is_named = bool(found) and "suite mates" in fields_in(f"{template.subject}\n{template.text}")
    return [{"suite mates": found}] if is_named else []


def _may_be_named(student: Student, template: LetterTemplate) -> bool:
    """Return True if roommates may read a student's e-mail; anything but a clear yes is a no."""
    if template.contact == Contact.EVERYBODY:
        return True
    column = template.consent_column
    said_yes = needs_of_student(student, (column,)) == (column,)
    return template.contact == Contact.WHO_AGREED and bool(column) and said_yes


def _day(day: date) -> str:
    """Return a day of a bed in words; "" for one that nobody set."""
    return "" if day in (ALWAYS.first, ALWAYS.last) else formats.day(day)


def _told_days(own: Stay | None) -> list[str]:
    """Return a student's own days as a letter keeps them; nothing for the days of the term."""
    return [] if own is None else [own.first.isoformat(), own.last.isoformat()]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def place_now(letter: Letter, placement: Placement) -> bool:
    """Return True if a student still has the room, bed and the people given in a letter."""
    beds = placement.places.filter(room__isnull=False)
    own = beds.filter(student_id=letter.student_id).select_related("room").first()
    if own is None or own.room is None:
        return False
    stay = place_stay(own, placement.term)
    near = [own.room.pk, *(room.pk for room in rooms_of_suite(own.room))]
    mates: list[int] = []
    beside: list[int] = []
    for other in beds.filter(room__in=near).exclude(pk=own.pk):
        if stay.overlaps(place_stay(other, placement.term)):
            (mates if other.room_id == own.room_id else beside).append(other.number)
    is_dated = own.arrives_on is not None or own.leaves_on is not None
    days = _told_days(stay if is_dated else None)
    now = [own.room_id, own.bed, sorted(mates), *days]
    return letter.place == [*now, *_named_suite_mates(letter.template, beside)]


def subject_for(template: LetterTemplate, recipient: Recipient) -> str:
    """Return the subject of one letter, in one line."""
    return _one_line(fill(template.subject, recipient.values))[:200]


def text_for(template: LetterTemplate, recipient: Recipient) -> str:
    """Return the text of one letter."""
    return fill(template.text, recipient.values)


def problems_of(
    template: LetterTemplate, placement: Placement, recipients: Sequence[Recipient]
) -> list[Problem]:
    """Return the problems of sending a template's letters, worst first."""
    words = f"{template.subject}\n{template.text}"
    used = fields_in(words)
    found = [Problem(sentence, blocks=True) for sentence in unknown_fields(words)]
    if not placement.is_published:
        found.append(
            Problem(
                _("%(placement)s is not published.") % {"placement": placement.name},
                _("An administrator publishes it first; preview, test and files work before."),
                blocks=True,
            )
        )
    if "page" in used and not settings.PUBLIC_URL:
        sentence = _(
            "The letter has [page], but this installation has no public address for links."
        )
        found.append(Problem(sentence, _("Its operator sets PUBLIC_URL."), blocks=True))
    if "contacts" in used:
        found += _consent_problems(template, placement)
    missing = [r for r in recipients if not r.student.email.strip()]
    found += _about(missing, _no_mail, _("Add addresses below, or print their letters."))
    wrong = [r for r in recipients if r.student.email.strip() and not r.address]
    found += _about(wrong, _wrong_mail, _("Correct it with a file of addresses below."))
    times = Counter(r.address.casefold() for r in recipients if r.address)
    shared = [r for r in recipients if times.get(r.address.casefold(), 0) > 1]
    found += _about(shared, _same_mail, _("Each letter goes there all the same."))
    for name in used:
        if name in FIELDS and name not in MAY_BE_EMPTY:
            blank = [r for r in recipients if not r.values[name]]
            found += _about(
                blank,
                partial(_blank_field, name),
                _("Their letters leave it blank."),
            )
    if "roommates" in used:
        unnamed = [r for r in recipients if r.roommates and any(not m.name for m in r.roommates)]
        found += _about(
            unnamed,
            _unnamed_roommate,
            _("They read “%(words)s”.") % {"words": NO_NAME},
        )
    homeless = placement.places.without_bed()
    without = tuple(homeless.order_by("number").values_list("number", flat=True))
    if without:
        words_of = _no_roommate if placement.is_pairs else _no_room
        found.append(Problem(words_of(len(without)), _("They get no letter."), without))
    return found


def _consent_problems(template: LetterTemplate, placement: Placement) -> list[Problem]:
    if template.contact == Contact.NOBODY:
        fix = _("Choose in the letter's settings whose e-mail it may show, or remove the field.")
        return [
            Problem(_("The letter has [contacts], but its settings show nobody's e-mail."), fix)
        ]
    column = template.consent_column
    if template.contact == Contact.WHO_AGREED and column not in placement.cohort.constraints:
        fix = _("Name the column in which students agreed, as the cohort calls it.")
        return [
            Problem(
                _("%(cohort)s has no column “%(column)s”.")
                % {"cohort": placement.cohort.name, "column": column},
                fix,
                blocks=True,
            )
        ]
    return []


def _about(found: Sequence[Recipient], sentence: Callable[[int], str], fix: str) -> list[Problem]:
    if not found:
        return []
    return [Problem(sentence(len(found)), fix, tuple(r.number for r in found))]


def _no_mail(n: int) -> str:
    return ngettext("%(count)s student has no e-mail.", "%(count)s students have no e-mail.", n) % {
        "count": f"{n:,}"
    }


def _wrong_mail(n: int) -> str:
    return ngettext(
        "%(count)s student has an e-mail that cannot be.",
        "%(count)s students have an e-mail that cannot be.",
        n,
    ) % {"count": f"{n:,}"}


def _same_mail(n: int) -> str:
    return ngettext(
        "%(count)s student has the same e-mail as another.",
        "%(count)s students have the same e-mail as another.",
        n,
    ) % {"count": f"{n:,}"}


def _blank_field(name: str, n: int) -> str:
    return ngettext(
        "%(count)s student has nothing for [%(field)s].",
        "%(count)s students have nothing for [%(field)s].",
        n,
    ) % {"count": f"{n:,}", "field": name}


def _unnamed_roommate(n: int) -> str:
    return ngettext(
        "%(count)s student has a roommate without a name.",
        "%(count)s students have a roommate without a name.",
        n,
    ) % {"count": f"{n:,}"}


def _no_roommate(n: int) -> str:
    return ngettext(
        "%(count)s student has no roommate.", "%(count)s students have no roommate.", n
    ) % {"count": f"{n:,}"}


def _no_room(n: int) -> str:
    return ngettext("%(count)s student has no room.", "%(count)s students have no room.", n) % {
        "count": f"{n:,}"
    }
