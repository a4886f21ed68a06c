"""The waiting list and its offers as a table."""

from typing import Any

from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.naming import shown_names
from webapp.housing.models import Placement
from webapp.tabular.tables_out import table_file
from webapp.waiting.selectors import mail_words, movers, offers_of, waiters

_HEADINGS = (
    "Place", "On screen", "Name", "Added", "Room", "Offer", "Offered", "Deadline", "Answered",
    "Mail", "Reason", "Waits for", "Wants", "Lives in",
)  # fmt: skip
_NO_OFFER = [""] * 7


def waiting_export(*, user: User, placement: Placement, file_format: str) -> tuple[bytes, str]:
    """Return the table and its content type: students in order, then students with ended offers.

    Students who want another bed come after those without a bed, with the wish and the room where
    they live; "Added" is the day of the wish. A student has a row for each offer; a student without
    one has a row with the place alone. Names are those that the person may see.
    """
    names = shown_names(user, placement.cohort)
    offers = list(offers_of(placement).order_by("pk"))
    people = waiters(placement, offers)
    places = {one.number for one in people}
    rows: list[list[Any]] = [list(_HEADINGS)]
    for one in people:
        own: list[Any] = [one.place, f"S-{one.number}", names.name(one.number), _time(one.added_at)]
        made = [offer for offer in offers if offer.student.number == one.number]
        what = ["a bed", "", ""]
        rows += [own + _cells(offer) + what for offer in made] or [own + _NO_OFFER + what]
    for wish, room in movers(placement):
        number = wish.student.number
        places.add(number)
        own = ["", f"S-{number}", names.name(number), _time(wish.created_at)]
        made = [offer for offer in offers if offer.student.number == number]
        what = ["another bed", wish.words, room.label]
        rows += [own + _cells(offer) + what for offer in made] or [own + _NO_OFFER + what]
    for offer in offers:
        number = offer.student.number
        if number not in places:
            rows.append(["", f"S-{number}", names.name(number), "", *_cells(offer), "", "", ""])
    data, media_type = table_file("Waiting list", rows, file_format)
    audit(user, "exported", placement, what="Waiting list", rows=len(rows) - 1, format=file_format)
    return data, media_type


def _cells(offer: Any) -> list[Any]:
    return [
        offer.room_label,
        offer.get_state_display(),
        _time(offer.offered_at),
        _time(offer.deadline),
        _time(offer.answered_at),
        mail_words(offer),
        offer.why or offer.following,
    ]


def _time(moment: Any) -> str:
    return f"{timezone.localtime(moment):%Y-%m-%d %H:%M %Z}" if moment else ""
