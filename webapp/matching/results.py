"""Conversion of engine results to plain values for rows and pages."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from engine import Status
from engine.learning.roommates.evaluation import Evaluation
from engine.learning.roommates.explanation import QuestionWeight
from engine.learning.roommates.training import TrainedRoommates
from engine.metrics import ReliabilityBin, RocCurve

MAX_ROC_POINTS = 160
NO_EFFECT = 0.03  # nats a step: under 3 % of odds, too little for a housing office to act on


def learning_figures(trained: TrainedRoommates, target_gap: float) -> dict[str, Any]:
    """Return the certificate and the settings for a model's page."""
    model = trained.model
    return {
        **trained.result.figures(),
        "target_gap": target_gap,
        "is_converged": trained.result.status is Status.CONVERGED,
        "n_features": len(model.theta),
        "ridge": model.ridge,
        "rho": model.rho,
        "calibration": model.calibration,
    }


def weight_rows(weights: Sequence[QuestionWeight]) -> list[dict[str, Any]]:
    """Return one row per question, from the strongest against pairing to the strongest for it.

    Each has its effect in words and the raw numbers.
    """
    rows = [
        {
            "question": w.question.name,
            "kind": w.question.kind,
            "levels": list(w.question.levels),
            "effect": w.step_effect,
            "odds": w.odds_factor,
            "importance": w.importance,
            "distance_weight": w.distance_weight,
            "pair_weights": w.pair_weights.tolist(),
            "pair_scores": w.pair_scores.tolist(),
            "blank_scores": list(w.blank_scores) if w.blank_scores else None,
            **effect_in_words(w.step_effect, w.question.kind),
        }
        for w in weights
    ]
    return sorted(rows, key=lambda row: row["effect"])


def effect_in_words(effect: float, kind: str) -> dict[str, str]:
    """Return the strong part and the rest of 'N % less likely per step apart'.

    The percentage compares the odds of a pairing, with all other answers equal.
    """
    if abs(effect) < NO_EFFECT:
        return {"words": _("No clear effect"), "per": ""}
    per = _("per step apart") if kind == "ordinal" else _("if different")
    if effect < 0:
        return {
            "words": _("%(exp)s %% less likely") % {"exp": f"{100 * (1 - math.exp(effect)):.0f}"},
            "per": per,
        }
    more = math.exp(effect) - 1
    if more >= 1:
        return {"words": _("%(more)s times as likely") % {"more": f"{1 + more:.1f}"}, "per": per}
    return {"words": _("%(more)s %% more likely") % {"more": f"{100 * more:.0f}"}, "per": per}


def evaluation_figures(evaluation: Evaluation) -> dict[str, Any]:
    """Return the figures of a model's check against pairs that it was not trained on."""
    return {
        "auc": evaluation.auc,
        "baseline_auc": evaluation.baseline_auc,
        "n_pairs": evaluation.n_pairs,
        "right": 1.0 - evaluation.hamming_error,
        "chance": 1.0 - evaluation.hamming_chance,
        "n_right": round((1.0 - evaluation.hamming_error) * evaluation.n_pairs),
        "hamming_error": evaluation.hamming_error,
    }


def evaluation_curves(evaluation: Evaluation) -> dict[str, Any]:
    """Return the data for the charts of a check."""
    return {
        "roc": _thinned(evaluation.roc),
        "baseline_roc": _thinned(evaluation.baseline_roc),
        "reliability": _bins(evaluation.reliability),
        "raw_reliability": _bins(evaluation.raw_reliability),
    }


def _thinned(curve: RocCurve) -> list[list[float]]:
    """Return at most MAX_ROC_POINTS corners of the curve, including both ends."""
    n = len(curve.false_positive_rate)
    keep = np.unique(np.linspace(0, n - 1, min(n, MAX_ROC_POINTS)).round().astype(int))
    x = curve.false_positive_rate[keep]
    y = curve.true_positive_rate[keep]
    return [[float(a), float(b)] for a, b in zip(x, y, strict=True)]


def _bins(bins: Sequence[ReliabilityBin]) -> list[dict[str, float]]:
    return [
        {
            "predicted": b.predicted,
            "observed": b.observed,
            "low": b.low,
            "high": b.high,
            "count": b.count,
        }
        for b in bins
    ]
