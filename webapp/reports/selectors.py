"""Contexts of the pages of checks and of the report by hall."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from engine import InvalidProblemError
from webapp.common.formats import number, per_cent
from webapp.housing.models import Placement, Room
from webapp.housing.selectors.placements import CardGroup, PlacementRooms, RoomCard
from webapp.reports.figures import RARE, read_curve
from webapp.reports.models import PlacementCheck
from webapp.translation.lazy import gettext_lazy

RATES = (0.01, 0.02, 0.05, 0.10)  # shares of past roommates that a veto may have forbidden
SHOWN = 40
WIDTH = 1.96  # standard errors of a 95 % interval
TABS = (
    ("doubt", gettext_lazy("Uncertainty")),
    ("veto", gettext_lazy("Veto")),
    ("parity", gettext_lazy("Groups")),
    ("drift", gettext_lazy("Drift")),
)
MEASURES: dict[str, tuple[str, str, Callable[[Any], str]]] = {
    "score": (
        gettext_lazy("Score"),
        gettext_lazy("mean of the pairs with the roommates, nats"),
        partial(number, digits=2),
    ),
    "uncertainty": (
        gettext_lazy("Uncertainty"),
        gettext_lazy(
            "possible roommates who are about as likely, in per cent of all possible ones"
        ),
        partial(per_cent, digits=0),
    ),
    "doubt": (
        gettext_lazy("Uncertainty"),
        gettext_lazy("roommates about as likely"),
        partial(number, digits=1),
    ),
    "requests": (
        gettext_lazy("Requests honoured"),
        gettext_lazy("in per cent of the requests made by the group"),
        partial(per_cent, digits=0),
    ),
}


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two students of one room, with one figure and its interval."""

    first: int
    second: int
    room: Room | None
    value: float
    low: float | None = None
    high: float | None = None


def checks_context(placement: Placement, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the page of checks for the parameters of its address."""
    check = PlacementCheck.objects.filter(placement=placement).select_related("job").first()
    tab = parameters.get("tab", "")
    context: dict[str, Any] = {
        "placement": placement,
        "check": check,
        "tabs": TABS,
        "tab": tab if tab in dict(TABS) else "doubt",
    }
    if check is None or not check.figures:
        return context
    check.placement = placement
    figures = check.figures
    rooms = {room.pk: room for room in placement.buildings.rooms.all()}
    builders = {
        "doubt": lambda: _doubt(figures["doubt"], rooms),
        "veto": lambda: _veto(figures, rooms, parameters),
        "parity": lambda: {"columns": _parity(figures["parity"])},
        "drift": lambda: {"drift": figures["drift"]},
    }
    return context | {"is_stale": check.is_stale} | builders[context["tab"]]()


def _doubt(figures: dict[str, Any], rooms: Mapping[int, Room]) -> dict[str, Any]:
    rows = []
    told_apart = [row for row in figures["pairs"] if row[3] >= RARE]
    for a, b, room, p, error in told_apart[:SHOWN]:
        half = None if error is None else WIDTH * error
        low = None if half is None else max(0.0, p - half)
        high = None if half is None else min(1.0, p + half)
        rows.append(PairRow(a, b, rooms.get(room), p, low, high))
    bins = figures.get("bins", [])
    tallest = max(bins, default=0)
    return {
        "rows": rows,
        "doubt": figures,
        "n_rare": figures.get("n_rare", len(figures["pairs"]) - len(told_apart)),
        "bars": [
            {"from": 10 * k, "to": 10 * k + 10, "count": count, "most": tallest}
            for k, count in enumerate(bins)
        ],
    }


def _veto(
    figures: dict[str, Any], rooms: Mapping[int, Room], parameters: Mapping[str, str]
) -> dict[str, Any]:
    veto = figures["veto"]
    said = parameters.get("rate", "")
    rate = next((known for known in RATES if f"{100 * known:g}" == said), 0.05)
    context = {"veto": veto, "rate": rate, "rates": [(r, f"{100 * r:g}") for r in RATES]}
    if not veto or "error" in veto:
        return context
    curve = read_curve(veto)
    try:
        threshold = curve.threshold(rate)
    except InvalidProblemError:
        return context
    at = int((curve.thresholds <= threshold).sum()) - 1
    low = [row for row in figures["pairs"] if row[3] < threshold]
    interval = curve.interval(rate)
    return context | {
        "threshold": threshold,
        "reached": float(curve.false_alarms[at]),
        "vetoed": float(curve.vetoed[at]),
        "interval_words": _("95 %% interval %(interval)s to %(interval_2)s")
        % {"interval": per_cent(interval[0]), "interval_2": per_cent(interval[1])},
        "low": interval[0],
        "high": interval[1],
        "n_low": len(low),
        "n_all": len(figures["pairs"]),
        "rows": [PairRow(a, b, rooms.get(room), score) for a, b, room, score in low[:SHOWN]],
    }


def _parity(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the groups by column and measure, with the meaning of each number in words."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["measure"] in MEASURES:
            in_words = MEASURES[row["measure"]][2]
            shown = {name: in_words(row[name]) for name in ("mean", "low", "high", "difference")}
            found[row["column"]][row["measure"]].append({**row, **shown})
    return [
        {
            "name": column,
            "measures": [
                {"title": MEASURES[m][0], "note": MEASURES[m][1], "rows": by_measure[m]}
                for m in MEASURES
                if m in by_measure
            ],
        }
        for column, by_measure in found.items()
    ]


@dataclass(slots=True)
class HallReport(CardGroup):
    """One hall: its rooms floor by floor, else in the order of the list, and their sums."""

    name: str
    cards: list[RoomCard] = field(default_factory=list)

    @property
    def n_rooms(self) -> int:
        """Rooms, open or not."""
        return len(self.cards)

    @property
    def n_closed(self) -> int:
        """Beds that are held back or offline, without extra beds."""
        return sum(card.room.capacity for card in self.cards if not card.room.is_open)

    @property
    def n_asked(self) -> int:
        """People in its rooms who requested somebody."""
        return sum(card.n_asked for card in self.cards)

    @property
    def n_honoured(self) -> int:
        """Those of them who live with a requested roommate."""
        return sum(card.n_honoured for card in self.cards)


def hall_reports(rooms: PlacementRooms) -> list[HallReport]:
    """Return the halls of a placement in the order of the building list, floor by floor."""
    halls: dict[str, HallReport] = {}
    for card in rooms.cards():
        halls.setdefault(card.room.hall, HallReport(card.room.hall)).cards.append(card)
    for hall in halls.values():
        floors = list(dict.fromkeys(card.room.floor for card in hall.cards))
        hall.cards.sort(key=lambda card: floors.index(card.room.floor))
    return list(halls.values())
