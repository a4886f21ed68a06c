"""Charts of models, each with a table of the same numbers."""

from typing import Any

from django.utils.translation import gettext as _

from webapp.charts import (
    Bar,
    Chart,
    diverging_bars,
    heatmap,
    reliability_chart,
    roc_chart,
)
from webapp.matching.models import LearnedModel


def model_charts(model: LearnedModel) -> dict[str, Chart]:
    """Return the charts of the weights and, for a checked model, of ROC and reliability."""
    charts = {
        "weights": diverging_bars(
            [Bar(row["question"], row["effect"]) for row in model.weights],
            title=_("What the choices say, question by question"),
            value_label=_("Weight (nats)"),
        )
    }
    findings, curves = model.findings, model.curves
    if findings:
        charts["roc"] = roc_chart(
            [
                (_("Model"), *_columns(curves["roc"]), findings["auc"]),
                (_("Plain distance"), *_columns(curves["baseline_roc"]), findings["baseline_auc"]),
            ],
            x_label=_("Other pairs ranked as high (%)"),
            y_label=_("Real pairs found (%)"),
        )
        if curves["reliability"]:
            charts["reliability"] = reliability_chart(
                [
                    (b["predicted"], b["observed"], b["low"], b["high"], int(b["count"]))
                    for b in curves["reliability"]
                ],
                title=_("Reliability"),
                x_label=_("Predicted probability (%, log axis)"),
                y_label=_("Observed (%)"),
            )
    return charts


def _columns(points: list[list[float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def question_chart(row: dict[str, Any]) -> Chart:
    """Return the chart of how much each combination of two answers adds to a score."""
    return heatmap(
        row["pair_scores"],
        title=_("%(question)s: which answers go together") % {"question": row["question"]},
        labels=row["levels"],
        unit_label=_("Part of the score (nats)"),
    )
