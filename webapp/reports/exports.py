"""The report by hall as a workbook, and rosters in an organisation's own shape."""

from collections.abc import Sequence

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.naming import shown_names
from webapp.housing.exports import roster_export
from webapp.housing.models import Placement
from webapp.reports.models import RosterShape
from webapp.reports.selectors import HallReport
from webapp.tabular.tables_out import XLSX, as_xlsx

_SUMS = ("Hall", "Rooms", "Beds", "Taken", "Free", "Held back or offline", "Mean score", "Asked",
         "Honoured", "Extra beds", "Of them taken", "Of them free")  # fmt: skip
_ROOMS = (
    "Hall",
    "Floor",
    "Room",
    "Beds",
    "State",
    "Free",
    "Score",
    "Students",
    "Free extra beds",
    "Suite",
)


def report_export(
    *, user: User, placement: Placement, halls: Sequence[HallReport]
) -> tuple[bytes, str]:
    """Return the report by hall as XLSX with its content type, and write the audit line."""
    names = shown_names(user, placement.cohort)
    sums = [
        (h.name, h.n_rooms, h.n_beds, h.n_taken, h.n_free, h.n_closed, _rounded(h.mean),
         h.n_asked, h.n_honoured, h.n_extra, h.n_extra_taken, h.n_free_extra)
        for h in halls
    ]  # fmt: skip
    rooms = [
        (
            card.room.hall,
            card.room.floor,
            card.room.name,
            card.room.beds_in_words if card.room.extra_beds else card.room.capacity,
            card.room.get_state_display(),
            card.free,
            _rounded(card.score),
            ", ".join(names.text(person.number) for person in card.people),
            card.free_extra,
            card.room.suite,
        )
        for hall in halls
        for card in hall.cards
    ]
    data = as_xlsx({"Halls": [_SUMS, *sums], "Rooms": [_ROOMS, *rooms]})
    audit(user, "exported", placement, what="Report by hall", halls=len(halls), format="xlsx")
    return data, XLSX


def _rounded(value: float | None) -> float | str:
    return "" if value is None else round(value, 4)


def shaped_roster(
    *, user: User, placement: Placement, shape: RosterShape, file_format: str
) -> tuple[bytes, str]:
    """Return a roster by student in a stored shape with its content type; write the audit line."""
    return roster_export(
        user=user,
        placement=placement,
        layout=shape.layout,
        file_format=file_format,
        exact=shape.is_exact,
        title=shape.name,
    )
