"""Versions of a placement beside its current rooms, with the effects of using each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.cohorts.naming import numbers_meant
from webapp.common.formats import counted, duration, is_telling, number, part_of, rough_gap
from webapp.common.listing import page_at
from webapp.housing.models import Placement, PlacementVersion, VersionOrigin
from webapp.housing.rules import PlacementRules, difference_in_words
from webapp.housing.scores import Scores
from webapp.housing.selectors.changes import ComparedFigure, compared_figures
from webapp.housing.selectors.drafts import ChangeLine
from webapp.housing.selectors.outcomes import low_score, moved_from, outcome
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.services.fitting import FittedVersion, fit_version

A_PAGE = 50
MORE_MINUTES = 5  # CPU time of "Continue for 5 minutes"


@dataclass(frozen=True, slots=True)
class VersionLine:
    """One version in the list, with its figures in words."""

    version: PlacementVersion
    is_current: bool

    @property
    def state(self) -> str:
        """The state of the version in one or two words."""
        if self.is_current:
            return _("In force")
        if self.version.is_waiting:
            return _("Waits for you")
        return _("Discarded") if self.version.discarded_at else _("Earlier")

    @property
    def words(self) -> str:
        """The origin of the version in words."""
        if self.version.origin == VersionOrigin.SAVED:
            return _("Saved before another version took over")
        return _("Computed")

    @property
    def placed(self) -> str:
        """The number of students with a bed."""
        return part_of(self.version.outcome["placed"], self.version.outcome["people"])

    @property
    def needs(self) -> str:
        """The number of needs met; "" if there are no needs."""
        return _share(self.version.outcome["needs"])

    @property
    def requests(self) -> str:
        """The number of requests honoured; "" if there are no requests."""
        mutual, one_sided = self.version.outcome["mutual"], self.version.outcome["one_sided"]
        return _share([mutual[0] + one_sided[0], mutual[1] + one_sided[1]])

    @property
    def mean(self) -> str:
        """The mean score."""
        return number(self.version.outcome["mean"], 2)


def _share(counts: Sequence[int]) -> str:
    return part_of(counts[0], counts[1]) if counts[1] else ""


def version_lines(placement: Placement) -> list[VersionLine]:
    """Return all versions of a placement, latest first."""
    versions = placement.versions.select_related("created_by").defer("rows", "rules", "figures")
    return [VersionLine(version, version.pk == placement.current_id) for version in versions]


def waiting_context(placement: Placement, n_homeless: int) -> dict[str, Any]:
    """Return the description of the last run, and of its version if that waits for a decision.

    ``n_homeless`` counts the students without a bed in the current rooms.
    """
    last = placement.versions.filter(origin=VersionOrigin.RUN).defer("rows", "rules").first()
    waiting = last if last is not None and last.is_waiting else None
    figures = placement.figures
    if waiting is not None:
        figures = waiting.figures
        n_homeless = waiting.outcome["people"] - waiting.outcome["placed"]
    return {
        "waiting_version": VersionLine(waiting, is_current=False) if waiting else None,
        "waiting_words": outcome_words(waiting, placement) if waiting else "",
        "stopped_words": stopped_words(figures, n_homeless),
        "more_minutes": MORE_MINUTES,
    }


def outcome_words(version: PlacementVersion, placement: Placement) -> str:
    """Return the outcome of a version in one sentence: beds, needs, requests, moves."""
    figures = version.outcome
    line = VersionLine(version, is_current=False)
    placed = placement.places.with_bed().count()
    more = figures["placed"] - placed
    if more > 0:
        words = _("%(placed)s students have a bed (%(difference)s more)")
    elif more:
        words = _("%(placed)s students have a bed (%(difference)s fewer)")
    else:
        words = _("%(placed)s students have a bed (as many as now)")
    parts = [words % {"placed": line.placed, "difference": f"{abs(more):,}"}]
    if line.needs:
        parts.append(_("%(needs)s needs are met") % {"needs": line.needs})
    if line.requests:
        parts.append(_("%(requests)s requests are honoured") % {"requests": line.requests})
    moved = counted(figures["moved"], "person")
    return _("%(parts)s. %(moved)s would live elsewhere.") % {
        "parts": ", ".join(parts),
        "moved": moved,
    }


def stopped_words(figures: Mapping[str, Any], n_homeless: int) -> str:
    """Return "Stopped after 2 minutes of computing; 61 students have no bed.", or "".

    Empty if the run ended by itself: more time would find nothing better.
    """
    if figures.get("has_converged", True):
        return ""
    took = _("Stopped after %(seconds)s of computing") % {"seconds": duration(figures["seconds"])}
    if figures.get("was_busy"):
        took += " " + _("(%(clock_seconds)s on the clock: the machine was busy)") % {
            "clock_seconds": duration(figures["clock_seconds"])
        }
    if n_homeless:
        return ngettext(
            "%(took)s; %(count)s student has no bed.",
            "%(took)s; %(count)s students have no bed.",
            n_homeless,
        ) % {"took": took, "count": f"{n_homeless:,}"}
    if is_telling(figures.get("relative_gap")):
        return _("%(took)s; everybody has a bed, within %(relative_gap)s of the best.") % {
            "took": took,
            "relative_gap": rough_gap(figures["relative_gap"]),
        }
    return _("%(took)s; everybody has a bed.") % {"took": took}


def version_context(
    placement: Placement, version: PlacementVersion, parameters: Mapping[str, str], user: User
) -> dict[str, Any]:
    """Return the context of the page on the changes that a version would make."""
    fitted = fit_version(placement, version)
    now = PlacementRooms(placement)
    then = _then(now, fitted, PlacementRules.from_json(version.rules))
    low = low_score(now)
    compared = compared_figures({"before": outcome(now, low), "after": outcome(then, low)})
    lines = _lines(now, fitted)
    losing = [line for line in lines if line.is_loss]
    moved = [line for line in lines if not line.is_loss]
    query = parameters.get("q", "").strip()[:80]
    people = numbers_meant(user, placement.cohort, query)
    shown = [line for line in moved if line.number in people or _matches(line, query)]
    return {
        "version": version,
        "line": VersionLine(version, version.pk == placement.current_id),
        "is_current": version.pk == placement.current_id,
        "fitted": fitted,
        "compared": [*compared, _moves(moved_from(now, then))],
        "rules": _differing_rules(placement, version),
        "losing": losing,
        "n_moved": len(moved),
        "refused": sorted(fitted.refused.items()),
        "query": query,
        "page_of": page_at(shown, parameters.get("page"), A_PAGE),
        "stopped_words": stopped_words(
            version.figures, version.outcome["people"] - version.outcome["placed"]
        ),
        "changes_nothing": not fitted.seats,
    }


def _then(now: PlacementRooms, fitted: FittedVersion, rules: PlacementRules) -> PlacementRooms:
    """Return the placement after the version is put into force."""
    members: dict[int, list[int]] = {}
    for student, room in fitted.rooms.items():
        if room is not None:
            members.setdefault(room, []).append(student)
    changed = {
        room
        for student, seat in fitted.seats.items()
        for room in (seat.room, now.where.get(student))
        if room is not None
    }
    scores = {place["number"]: place["score"] for place in now.places}
    groups = [people for room, people in members.items() if room in changed]
    scores |= dict.fromkeys(fitted.seats)
    scores |= Scores(now.placement).of_rooms(groups) if groups else {}
    then = now.once_moved(fitted.rooms, scores)
    then.rules = rules
    return then


def _lines(now: PlacementRooms, fitted: FittedVersion) -> list[ChangeLine]:
    rooms = {room.pk: room for room in now.rooms}
    lines = []
    for student in sorted(fitted.seats):
        before, after = now.where.get(student), fitted.rooms[student]
        if before == after:
            continue  # the only change is a lock
        kind = "lose" if after is None else "get" if before is None else "change"
        old = rooms[before] if before is not None else None
        new = rooms[after] if after is not None else None
        lines.append(ChangeLine(student, old, new, kind))
    return lines


def _matches(line: ChangeLine, query: str) -> bool:
    names = [line.label, *(room.label for room in (line.before, line.after) if room)]
    return any(query.casefold() in name.casefold() for name in names)


def _moves(count: int) -> ComparedFigure:
    return ComparedFigure(_("People who live elsewhere"), "", f"{count:,}", "", None)


def _differing_rules(placement: Placement, version: PlacementVersion) -> list[tuple[str, str, str]]:
    """Return the rules that a version would change: name, words now, words then."""
    now = difference_in_words(PlacementRules.from_json(placement.rules))
    then = difference_in_words(PlacementRules.from_json(version.rules))
    return [(name, now[name], then[name]) for name in now if now[name] != then[name]]
