"""Charts of a placement in pairs, each with a table of the same numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from webapp.charts import Chart, heatmap, histogram
from webapp.housing.models import Placement
from webapp.housing.pairs.numbers import PairNumbers
from webapp.matching.like_students import first_of_groups, leading_questions

HISTOGRAM_BINS = 24


@dataclass(frozen=True, slots=True)
class ScoreComparison:
    """Scores of the proposed pairs beside those of all pairs that the rules allow.

    ``better_than`` is the share of allowed pairs that score below the median proposed pair.
    """

    chart: Chart
    better_than: float


def compare_scores(numbers: PairNumbers) -> ScoreComparison:
    """Return the distribution of the proposed pairs' scores beside that of all allowed pairs."""
    proposed = np.array(numbers.placement.pairs.values_list("score", flat=True), dtype=np.float64)
    allowed = numbers.allowed_scores
    both = np.concatenate([proposed, allowed])
    edges = np.histogram_bin_edges(both, bins=min(HISTOGRAM_BINS, max(4, len(proposed) // 3)))
    chart = histogram(
        (_("Proposed"), np.histogram(proposed, edges)[0].tolist()),
        (_("All allowed pairs"), np.histogram(allowed, edges)[0].tolist()),
        edges.tolist(),
        title=_("Scores of the proposed pairs and of all allowed pairs"),
        x_label=_("Score (nats)"),
        y_label=_("Share (%)"),
    )
    return ScoreComparison(chart, float(np.mean(allowed < np.median(proposed))))


def probability_heatmap(numbers: PairNumbers) -> Chart:
    """Return the chart of pair probabilities between groups of like students.

    Values are multiples of an even draw. Students are sorted by the most important question, then
    by the next ones, and cut into equal groups.
    """
    placement: Placement = numbers.placement
    leading = leading_questions(placement.model)[0]
    order = numbers.order
    starts = first_of_groups(len(order)).tolist()
    relative = numbers.between_groups
    names_of_groups = [_group_label(numbers, leading, order[start]) for start in starts]
    labels = [
        name if k == 0 or name != names_of_groups[k - 1] else ""
        for k, name in enumerate(names_of_groups)
    ]
    return heatmap(
        relative.tolist(),
        title=_("Probability of pairs between groups, ordered by %(question)s")
        % {"question": leading["question"]},
        labels=labels,
        unit_label=_("× an even draw"),
        low=max(0.05, float(np.nanmin(np.where(relative > 0, relative, np.nan)))),
        log=True,
    )


def _group_label(numbers: PairNumbers, row: dict[str, Any], student: int) -> str:
    names = list(numbers.survey.questionnaire.names)
    code = int(numbers.survey.answers[student, names.index(row["question"])])
    return _("blank") if code < 0 else str(row["levels"][code])[:14]
