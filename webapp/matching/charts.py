"""The pictures of models and proposals, each with the table of the same numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webapp.common.charts import (
    Bar,
    Chart,
    diverging_bars,
    heatmap,
    histogram,
    reliability_chart,
    roc_chart,
)
from webapp.matching.models import LearnedModel, Proposal
from webapp.matching.numbers import ProposalNumbers

HEATMAP_CELLS = 24
HISTOGRAM_BINS = 24


def model_charts(model: LearnedModel) -> dict[str, Chart]:
    """Return weights always, ROC and reliability when the model was checked."""
    charts = {
        "weights": diverging_bars(
            [Bar(row["question"], row["effect"]) for row in model.weights],
            title="What the choices say, question by question",
            value_label="Weight (nats)",
        )
    }
    findings, curves = model.findings, model.curves
    if findings:
        charts["roc"] = roc_chart(
            [
                ("Model", *_columns(curves["roc"]), findings["auc"]),
                ("Plain distance", *_columns(curves["baseline_roc"]), findings["baseline_auc"]),
            ]
        )
        if curves["reliability"]:
            charts["reliability"] = reliability_chart(
                [
                    (b["predicted"], b["observed"], b["low"], b["high"], int(b["count"]))
                    for b in curves["reliability"]
                ]
            )
    return charts


def _columns(points: list[list[float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def question_chart(row: dict[str, Any]) -> Chart:
    """Return which answers go together: what each pair of answers adds to a score."""
    return heatmap(
        row["pair_scores"],
        title=f"{row['question']}: which answers go together",
        labels=row["levels"],
        unit_label="Part of the score (nats)",
    )


@dataclass(frozen=True, slots=True)
class ScoreComparison:
    """The scores of the proposed pairs beside those of all pairs that the rules allow.

    ``better_than`` is the share of allowed pairs that score below the middle proposed pair.
    """

    chart: Chart
    better_than: float


def compare_scores(numbers: ProposalNumbers) -> ScoreComparison:
    """Return how the scores of the proposed pairs are spread, beside what could have been."""
    proposed = np.array(numbers.proposal.pairs.values_list("score", flat=True), dtype=np.float64)
    allowed = numbers.allowed_scores()
    both = np.concatenate([proposed, allowed])
    edges = np.histogram_bin_edges(both, bins=min(HISTOGRAM_BINS, max(4, len(proposed) // 3)))
    chart = histogram(
        ("Proposed", np.histogram(proposed, edges)[0].tolist()),
        ("All allowed pairs", np.histogram(allowed, edges)[0].tolist()),
        edges.tolist(),
        title="Scores of the proposed pairs and of all allowed pairs",
        x_label="Score (nats)",
        y_label="Share (%)",
    )
    return ScoreComparison(chart, float(np.mean(allowed < np.median(proposed))))


def probability_heatmap(numbers: ProposalNumbers) -> Chart:
    """Return the probability of pairs between groups of like students, as multiples of even draw.

    Students are put in the order of the question that matters most, then of the next, and cut into
    equal groups.
    """
    proposal: Proposal = numbers.proposal
    weights = sorted(proposal.model.weights, key=lambda row: -row["importance"])
    order = _order_by(numbers, weights[:3])
    n = len(order)
    cuts = np.linspace(0, n, min(HEATMAP_CELLS, n) + 1).round().astype(int)[:-1]
    relative = _multiples_of_even_draw(numbers, order, cuts)
    leading = weights[0]
    names_of_groups = [_group_label(numbers, leading, order[start]) for start in cuts.tolist()]
    labels = [
        name if k == 0 or name != names_of_groups[k - 1] else ""
        for k, name in enumerate(names_of_groups)
    ]
    return heatmap(
        relative.tolist(),
        title=f"Probability of pairs between groups, ordered by {leading['question']}",
        labels=labels,
        unit_label="× an even draw",
        low=max(0.05, float(np.nanmin(np.where(relative > 0, relative, np.nan)))),
        log=True,
    )


def _multiples_of_even_draw(
    numbers: ProposalNumbers, order: NDArray[np.int64], cuts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return, group by group, the probability of all allowed pairs over that of an even draw.

    An even draw is that of a pair's own figure: one over the mean number of the two students'
    allowed partners. Pairs that are not allowed count in neither; nan where none is allowed.
    """
    allowed = np.maximum(numbers.arrays["n_allowed"][order], 1).astype(np.float64)
    relative = np.full((len(cuts), len(cuts)), np.nan)
    for cell, rows in enumerate(np.split(np.arange(len(order)), cuts[1:])):
        chances = numbers.marginals[order[rows]][:, order]
        even = np.where(chances > 0, 2.0 / (allowed[rows, None] + allowed), 0.0)
        sums = np.add.reduceat(chances.sum(axis=0, dtype=np.float64), cuts)
        evens = np.add.reduceat(even.sum(axis=0), cuts)
        np.divide(sums, evens, out=relative[cell], where=evens > 0)
    return relative


def _order_by(numbers: ProposalNumbers, rows: list[dict[str, Any]]) -> NDArray[np.int64]:
    """Return the students in the order of their answers, the first question weighing most."""
    names = list(numbers.survey.questionnaire.names)
    keys = [numbers.survey.answers[:, names.index(row["question"])] for row in rows]
    return np.lexsort(keys[::-1])


def _group_label(numbers: ProposalNumbers, row: dict[str, Any], student: int) -> str:
    names = list(numbers.survey.questionnaire.names)
    code = int(numbers.survey.answers[student, names.index(row["question"])])
    return "blank" if code < 0 else str(row["levels"][code])[:14]
