"""Placements of one cohort side by side: the rules that differ, then the outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.cohorts.models import Cohort
from webapp.common.formats import gap, is_telling, number, part_of, signed
from webapp.housing.models import Placement
from webapp.housing.rules import PlacementRules, difference_in_words
from webapp.housing.selectors.outcomes import (
    low_score,
    moved_from,
    outcome,
    scored_alike,
    side_by_side,
)
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.publication import publish_question, published_placements

AT_MOST = 4  # columns that fit beside each other
BINS = 24
TOO_FEW = 20  # people; the mean of a smaller group is not shown
AXIS = 0.30  # score: end of the axis of groups on both sides
BAND = 0.10  # score: largest unmarked distance of a group's mean from the mean of all


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of the comparison; ``share`` is 0 to 1 if it is part of a whole.

    ``difference`` is the difference from the published scenario, or from the first, in words.
    """

    text: str
    share: float | None = None
    is_best: bool = False
    difference: str = ""


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One line of the comparison, with one entry for each scenario."""

    title: str
    note: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class GroupMean:
    """A group's mean score minus that of all; None if the group is too small."""

    name: str
    size: int
    difference: float | None

    @property
    def x(self) -> float:
        """Position of the dot on an axis of length 120 from -AXIS to AXIS, score."""
        shown = min(max(self.difference or 0.0, -AXIS), AXIS)
        return round(60 + 56 * shown / AXIS, 1)

    @property
    def is_outside(self) -> bool:
        """Return True if the mean lies outside the band."""
        return self.difference is not None and abs(self.difference) > BAND


def compared_placements(cohort: Cohort) -> tuple[list[Placement], Placement | None]:
    """Return the placements that are compared, at most four, and the published one.

    Of several published ones it is that of the term of today, else of the next term.
    """
    every = list(
        cohort.placements.select_related("cohort", "model", "job", "buildings").order_by(
            "created_at"
        )
    )
    now = published_placements(cohort)[:1]
    published = next((p for p in every if p in now), None)
    chosen = [p for p in every if p.is_computed][-AT_MOST:]
    if published is not None and published not in chosen and published.is_computed:
        chosen = [published, *chosen[1:]]
    return chosen, published


def scenarios_context(cohort: Cohort, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the page of scenarios of a cohort."""
    chosen, published = compared_placements(cohort)
    context: dict[str, Any] = {
        "cohort": cohort,
        "n_placements": cohort.placements.count(),
        "chosen": chosen,
        "published": published,
    }
    if not chosen:
        return context
    only = next((p for p in chosen if str(p.pk) == parameters.get("only")), None)
    base = base_of(chosen, published)
    found = scored_alike(side_by_side(chosen), base)
    low = low_score(found[base])
    outcomes = [outcome(rooms, low) for rooms in found]
    scores = [_scores(rooms) for rooms in found]
    return context | {
        "publishable": _publishable(found),
        "only": only,
        "column": chosen.index(only) + 2 if only else 2,
        "base": chosen[base],
        "fuller": _fuller_words(chosen, outcomes),
        "is_one_model": len({placement.model_id for placement in chosen}) == 1,
        "shows_differences": parameters.get("show") == "differences" and len(chosen) > 1,
        "rules": _differing_rules(chosen),
        "rows": _rows(found, outcomes, published, base),
        "histograms": _histograms(scores),
        "parity": [_parity(rooms) for rooms in found],
    }


def _publishable(found: Sequence[PlacementRooms]) -> list[dict[str, Any]]:
    """Return the scenarios that could be published now, with their confirmation questions."""
    return [
        {
            "placement": rooms.placement,
            "dialog": f"publish-{rooms.placement.pk}",
            "form": f"publish-form-{rooms.placement.pk}",
            "n_placed": rooms.n_placed,
            "question": publish_question(rooms.placement, rooms.homeless),
        }
        for rooms in found
        if not rooms.placement.is_published and not rooms.placement.is_running
    ]


def base_of(chosen: Sequence[Placement], published: Placement | None) -> int:
    """Return the index of the compared placement that serves as the reference."""
    return chosen.index(published) if published is not None and published in chosen else 0


def _scores(rooms: PlacementRooms) -> list[float]:
    return [place["score"] for place in rooms.places if place["score"] is not None]


def _differing_rules(placements: Sequence[Placement]) -> list[ComparedRow]:
    words = [difference_in_words(PlacementRules.from_json(p.rules)) for p in placements]
    models = [
        _("%(model)s, set by hand") % {"model": p.model.name}
        if p.model.is_set_by_hand
        else p.model.name
        for p in placements
    ]
    lines = {_("Weights"): models} | {name: [entry[name] for entry in words] for name in words[0]}
    return [
        ComparedRow(name, "", tuple(Entry(text) for text in texts))
        for name, texts in lines.items()
        if len(set(texts)) > 1
    ]


def _rows(
    found: Sequence[PlacementRooms],
    outcomes: Sequence[dict[str, Any]],
    published: Placement | None,
    base: int,
) -> list[ComparedRow]:
    judge = _Judge(base, _fewer_than_most(outcomes))
    rows = [judge.share_row(_("Placed"), [[o["placed"], o["people"]] for o in outcomes])]
    for title, key in (
        (_("Needs met"), "needs"),
        (_("Mutual requests honoured"), "mutual"),
        (_("One-sided honoured"), "one_sided"),
        (_("First choice"), "first_choice"),
        (_("Any of their choices"), "any_choice"),
    ):
        if any(o[key][1] for o in outcomes):
            rows.append(judge.share_row(title, [o[key] for o in outcomes]))
    note = _("by the weights of %(model)s; higher fits better") % {
        "model": found[base].placement.model.name
    }
    rows.append(judge.number_row(_("Mean score"), note, [o["mean"] for o in outcomes]))
    if outcomes[base]["low"] is not None:
        title = _("Rooms below %(low)s") % {"low": number(outcomes[base]["low"], 1)}
        counts = [[o["rooms_below"], o["rooms_shared"]] for o in outcomes]
        rows.append(judge.share_row(title, counts, is_good=False))
    if published is not None and found[base].placement == published:
        moved = [moved_from(found[base], rooms) for rooms in found]
        texts = [
            _("%(count)s from %(published)s") % {"count": f"{count:,}", "published": published.name}
            if count
            else _("none")
            for count in moved
        ]
        rows.append(ComparedRow(_("People who move"), "", tuple(_same(text) for text in texts)))
    rows.append(
        ComparedRow(
            _("Certificate"),
            _("of the optimisation, not of the match"),
            tuple(_same(_certificate(rooms.placement)) for rooms in found),
        )
    )
    return rows


def _same(text: str) -> Entry:
    """Return an entry whose value and difference have the same text."""
    return Entry(text, difference=text)


def _certificate(placement: Placement) -> str:
    found = placement.figures.get("relative_gap")
    if found is None:
        return _("not yet")
    return (
        _("within %(found)s of its best") % {"found": gap(found)}
        if is_telling(found)
        else _("too early to tell")
    )


def _fewer_than_most(outcomes: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return how many people fewer than the fullest scenario each one places."""
    most = max(o["placed"] for o in outcomes)
    return [most - o["placed"] for o in outcomes]


def _fuller_words(chosen: Sequence[Placement], outcomes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each scenario that places fewer people than another."""
    return [
        ngettext(
            "%(placement)s gives %(count)s student fewer a bed, so nothing in it is marked "
            "as best.",
            "%(placement)s gives %(count)s students fewer a bed, so nothing in it is marked "
            "as best.",
            fewer,
        )
        % {"placement": placement.name, "count": f"{fewer:,}"}
        for placement, fewer in zip(chosen, _fewer_than_most(outcomes), strict=True)
        if fewer
    ]


@dataclass(frozen=True, slots=True)
class _Judge:
    """Rows of figures with the best marked. A scenario that places fewer people is never best."""

    base: int
    fewer: Sequence[int]

    def _best(self, values: Sequence[float | None], *, is_good: bool = True) -> set[int]:
        """Return the scenarios to mark, among those that place the most people."""
        known = {k: value for k, value in enumerate(values) if value is not None}
        full = {k: value for k, value in known.items() if not self.fewer[k]}
        choose = max if is_good else min
        if len(set(known.values())) < 2 or not full:
            return set()
        best = choose(full.values())
        is_telling = len(set(full.values())) > 1 or best == choose(known.values())
        return {k for k, value in full.items() if value == best and is_telling}

    def number_row(self, title: str, note: str, values: Sequence[float | None]) -> ComparedRow:
        """Return a row of numbers with two digits, the higher the better; None: nobody shares."""
        rounded = [None if value is None else round(value, 2) for value in values]
        known = [value for value in rounded if value is not None] or [0.0]
        low, span = min(known), max(known) - min(known)
        best, reference = self._best(rounded), rounded[self.base]
        entries = []
        for k, value in enumerate(rounded):
            if value is None:
                entries.append(_same(_("nobody shares a room")))
                continue
            entries.append(
                Entry(
                    number(value, 2),
                    (value - low) / span if span else None,
                    is_best=k in best,
                    difference=_against(value - (reference or 0.0), 2, is_base=k == self.base),
                )
            )
        return ComparedRow(title, note, tuple(entries))

    def share_row(
        self, title: str, counts: Sequence[Sequence[int]], *, is_good: bool = True
    ) -> ComparedRow:
        """Return a row of counts of a whole: "48 of 50"."""
        met = [count[0] for count in counts]
        best = self._best(met, is_good=is_good)
        entries = (
            Entry(
                part_of(a, b),
                a / b if b else 0.0,
                is_best=k in best,
                difference=_against(a - met[self.base], 0, is_base=k == self.base),
            )
            for k, (a, b) in enumerate(counts)
        )
        return ComparedRow(title, "", tuple(entries))


def _against(difference: float, digits: int, *, is_base: bool) -> str:
    return _("compared with this") if is_base else signed(difference, digits) or "0"


def scenarios_table(cohort: Cohort) -> list[list[str]]:
    """Return the comparison as rows of a file: names, then rules, then outcomes."""
    context = scenarios_context(cohort, {})
    if not context["chosen"]:
        return [[_("No placement of this cohort is computed yet.")]]
    header = ["", *(placement.name for placement in context["chosen"])]
    lines = [*context["rules"], *context["rows"]]
    return [header, *([line.title, *(entry.text for entry in line.entries)] for line in lines)]


def _histograms(scores: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """Return histograms of people by score for every scenario, on one axis."""
    everybody = [score for part in scores for score in part]
    if not everybody:
        return []
    edges = np.histogram_bin_edges(everybody, bins=BINS)
    counts = [np.histogram(part, bins=edges)[0] for part in scores]
    top = max(int(part.max()) for part in counts)
    low, span = float(edges[0]), float(edges[-1] - edges[0]) or 1.0
    return [
        {
            "bars": [
                {"x": round(240 * k / BINS, 1), "height": round(44 * int(c) / top, 1)}
                for k, c in enumerate(part)
            ],
            "low": low,
            "high": float(edges[-1]),
            "mean": float(np.mean(own)) if len(own) else None,
            "mean_x": round(240 * (float(np.mean(own)) - low) / span, 1) if len(own) else None,
        }
        for part, own in zip(counts, scores, strict=True)
    ]


def _parity(rooms: PlacementRooms) -> list[GroupMean]:
    """Return each group's mean score minus that of all, by the columns that rules may name."""
    score = {p["number"]: p["score"] for p in rooms.places if p["score"] is not None}
    if not score:
        return []
    mean = sum(score.values()) / len(score)
    members: dict[tuple[str, str], list[float]] = {}
    columns = rooms.placement.cohort.constraints
    for student, own in score.items():
        attributes = rooms.wishes.attributes.get(student, {})
        for column in columns:
            if value := attributes.get(column):
                members.setdefault((column, value), []).append(own)
    return [
        GroupMean(
            f"{column} {value}",
            len(found),
            sum(found) / len(found) - mean if len(found) >= TOO_FEW else None,
        )
        for (column, value), found in sorted(members.items())
    ][:12]
