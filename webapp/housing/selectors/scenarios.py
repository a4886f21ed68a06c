"""Placements of one cohort side by side: the rules that differ, then what came out of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from webapp.cohorts.models import Cohort
from webapp.common.formats import gap, is_telling, number
from webapp.housing.models import Placement
from webapp.housing.rules import PlacementRules, difference_in_words
from webapp.housing.selectors.placements import PlacementRooms, outcome
from webapp.housing.services.placements import moved_between

AT_MOST = 4  # columns that fit beside each other
BINS = 24
TOO_FEW = 20  # people below which a group's mean says nothing
BAND = 0.10  # score: how far a group's mean may lie from that of all without a mark


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of the comparison; ``share`` 0 to 1 where it is a part of a whole."""

    text: str
    share: float | None = None
    is_best: bool = False


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One line of the comparison, an entry a scenario."""

    title: str
    note: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class GroupMean:
    """A group's mean score minus that of all, or None where there are too few to say."""

    name: str
    size: int
    difference: float | None

    @property
    def is_outside(self) -> bool:
        """Whether it lies outside the band."""
        return self.difference is not None and abs(self.difference) > BAND


def scenarios_context(cohort: Cohort, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the page of scenarios of a cohort."""
    every = list(
        cohort.placements.select_related("cohort", "model", "job", "buildings").order_by(
            "created_at"
        )
    )
    published = next((p for p in every if p.is_published), None)
    chosen = [p for p in every if p.is_computed][-AT_MOST:]
    if published is not None and published not in chosen and published.is_computed:
        chosen = [published, *chosen[1:]]
    context: dict[str, Any] = {
        "cohort": cohort,
        "placements": every,
        "chosen": chosen,
        "published": published,
    }
    if not chosen:
        return context
    found = [PlacementRooms(placement) for placement in chosen]
    outcomes = [outcome(rooms) for rooms in found]
    scores = [_scores(rooms) for rooms in found]
    return context | {
        "rules": _differing_rules(chosen),
        "rows": _rows(chosen, outcomes, published),
        "histograms": _histograms(scores),
        "parity": [_parity(rooms) for rooms in found],
    }


def _scores(rooms: PlacementRooms) -> list[float]:
    return [place["score"] for place in rooms.places if place["score"] is not None]


def _differing_rules(placements: Sequence[Placement]) -> list[ComparedRow]:
    words = [difference_in_words(PlacementRules.from_json(p.rules)) for p in placements]
    models = [p.model.name for p in placements]
    lines = {"Model": models} | {name: [entry[name] for entry in words] for name in words[0]}
    return [
        ComparedRow(name, "", tuple(Entry(text) for text in texts))
        for name, texts in lines.items()
        if len(set(texts)) > 1
    ]


def _rows(
    placements: Sequence[Placement], outcomes: Sequence[dict[str, Any]], published: Placement | None
) -> list[ComparedRow]:
    rows = [_number_row("Learned score", "higher fits better", [o["total"] for o in outcomes], 1)]
    rows.append(_share_row("Placed", [[o["placed"], o["people"]] for o in outcomes]))
    for title, key in (
        ("Mutual requests honoured", "mutual"),
        ("One-sided honoured", "one_sided"),
        ("First choice", "first_choice"),
        ("Any of their choices", "any_choice"),
        ("Needs met", "needs"),
    ):
        if any(o[key][1] for o in outcomes):
            rows.append(_share_row(title, [o[key] for o in outcomes]))
    if published is not None:
        moved = [0 if p.pk == published.pk else moved_between(published, p) for p in placements]
        texts = [f"{count:,} from {published.name}" if count else "none" for count in moved]
        rows.append(ComparedRow("People who move", "", tuple(Entry(text) for text in texts)))
    rows.append(
        ComparedRow(
            "Certificate",
            "of the optimisation, not of the match",
            tuple(Entry(_certificate(placement)) for placement in placements),
        )
    )
    return rows


def _certificate(placement: Placement) -> str:
    found = placement.figures.get("relative_gap")
    if found is None:
        return "not yet"
    return f"within {gap(found)} of its best" if is_telling(found) else "too early to tell"


def _number_row(title: str, note: str, values: Sequence[float], digits: int) -> ComparedRow:
    rounded = [round(value, digits) for value in values]
    best = max(rounded) if len(set(rounded)) > 1 else None
    low, high = min(values), max(values)
    entries = (
        Entry(
            number(value, digits),
            (value - low) / (high - low) if high > low else None,
            is_best=rounded[k] == best,
        )
        for k, value in enumerate(values)
    )
    return ComparedRow(title, note, tuple(entries))


def _share_row(title: str, counts: Sequence[Sequence[int]]) -> ComparedRow:
    met = [count[0] for count in counts]
    best = max(met) if len(set(met)) > 1 else None
    entries = (Entry(f"{a:,} of {b:,}", a / b if b else 0.0, is_best=a == best) for a, b in counts)
    return ComparedRow(title, "", tuple(entries))


def _histograms(scores: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """Return people by their score for every scenario, on one axis."""
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
    """Return every group's mean score minus that of all, by the columns that rules may name."""
    score = {p["number"]: p["score"] for p in rooms.places if p["score"] is not None}
    if not score:
        return []
    mean = sum(score.values()) / len(score)
    members: dict[tuple[str, str], list[float]] = {}
    students = rooms.placement.cohort.students.values_list("number", "attributes")
    for student, attributes in students:
        if student in score:
            for column in rooms.placement.cohort.constraints:
                value = attributes.get(column, "")
                if value:
                    members.setdefault((column, value), []).append(score[student])
    return [
        GroupMean(
            f"{column} {value}",
            len(found),
            sum(found) / len(found) - mean if len(found) >= TOO_FEW else None,
        )
        for (column, value), found in sorted(members.items())
    ][:12]
