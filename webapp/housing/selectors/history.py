"""The history of a placement: every act, with Undo unless a later act contradicts it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from webapp.common.listing import page_at
from webapp.housing.models import ActKind, Placement, PlacementEvent
from webapp.housing.models.history import NOT_UNDOABLE
from webapp.housing.services.conflicts import students_of
from webapp.housing.services.undo import beds_changed, contradiction, situation_of
from webapp.translation.lazy import gettext_lazy

A_PAGE = 30
NAMED = 8  # students whom a line names
_INSTEAD = {
    ActKind.PUBLISHED: gettext_lazy("Withdraw the publication instead"),
    ActKind.UNPUBLISHED: gettext_lazy("Publish it again instead"),
    ActKind.DISCARDED: gettext_lazy("Restore the version above"),
}


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One act with its description and its possible undo.

    ``refusal`` says why it cannot be undone, "" if it can; ``n_beds`` counts the students whose bed
    an undo would change.
    """

    event: PlacementEvent
    refusal: str
    n_beds: int

    @property
    def can_be_undone(self) -> bool:
        """Return True if an Undo button is shown."""
        return not self.refusal

    @property
    def students(self) -> str:
        """The students concerned, as many as fit a line."""
        numbers = sorted(students_of(self.event))
        shown = ", ".join(f"S-{number}" for number in numbers[:NAMED])
        more = len(numbers) - NAMED
        return (
            _("%(shown)s and %(more)s more") % {"shown": shown, "more": f"{more:,}"}
            if more > 0
            else shown
        )

    @property
    def words(self) -> str:
        """The reason why there is no Undo button."""
        if self.event.undone_at is not None:
            return _("Undone")
        if self.event.kind in NOT_UNDOABLE:
            return _INSTEAD.get(ActKind(self.event.kind), "")
        if self.event.kind == ActKind.VERSION and not self.event.details:
            return _("There were no rooms before it")
        return self.refusal


def history_context(placement: Placement, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the page of a placement's history: a page of acts, latest first."""
    acts = placement.events.select_related("user", "undoes")
    page = page_at(acts, parameters.get("page"), A_PAGE)
    return {"page_of": page, "lines": history_lines(placement, list(page.object_list))}


def history_lines(placement: Placement, events: list[PlacementEvent]) -> list[HistoryLine]:
    """Return acts with their descriptions and possible undos."""
    now = situation_of(placement, events)
    return [
        HistoryLine(event, contradiction(placement, event, now), len(beds_changed(event)))
        for event in events
    ]
