"""Verb ``roommates weights``: effects of questions with intervals, by year, and their value."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.option_types import number, seconds, whole_number_from
from engine.cli.output_paths import check_writable, open_checkpoint
from engine.core.arguments import FloatArray
from engine.crf.roster import Cohort
from engine.datasets.roommate_files import write_rows
from engine.learning.roommates.defaults import RHO
from engine.learning.roommates.kept_estimates import KeptEstimates
from engine.learning.roommates.model import load_roommate_model, make_roommate_model
from engine.learning.roommates.question_information import QuestionInformation, question_information
from engine.learning.roommates.uncertainty import (
    WEAK_RIDGE,
    Effect,
    WeightEstimate,
    WeightsByYear,
    estimate_by_year,
    estimate_weights,
    refit_effects,
)

MOST_REFITS = 1_000


def add_weights_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb to those that name the years."""
    parser.add_argument(
        "--out",
        type=Path,
        metavar="EFFECTS.csv",
        help="write one row per question: effect, interval, drift, information",
    )
    parser.add_argument(
        "--model",
        type=Path,
        metavar="MODEL.npz",
        help="information about pairs by this model; by default by the estimate itself",
    )
    parser.add_argument(
        "--refits",
        type=whole_number_from(0, MOST_REFITS),
        default=0,
        metavar="R",
        help="times to draw the years again, to state the spread (default %(default)d)",
    )
    parser.add_argument(
        "--lambda",
        dest="ridge",
        type=number(above=0.0),
        default=WEAK_RIDGE,
        metavar="LAMBDA",
        help="pull towards zero of the estimate (default %(default)g, far weaker than in learning)",
    )
    parser.add_argument(
        "--rho",
        type=number(at_least=0.0, at_most=1.0),
        default=RHO,
        help="reweighting of the entropy, 0 to 1 (default %(default)g)",
    )
    parser.add_argument("--max-seconds", type=seconds, metavar="S", help="of each estimate")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE.npz",
        help="resume point after an interrupted run",
    )


def run_weights(args: argparse.Namespace, cohorts: Sequence[Cohort]) -> dict[str, Any]:
    """Estimate the weights and return what ``--json`` prints.

    Raises
    ------
    InvalidProblemError
        For bad files or options.
    """
    if args.out is not None:
        check_writable(args.out)
    model = None if args.model is None else load_roommate_model(args.model)
    checkpoint = open_checkpoint(args.checkpoint)
    kept = None if checkpoint is None else KeptEstimates(checkpoint, cohorts)
    estimate = estimate_weights(
        cohorts, rho=args.rho, ridge=args.ridge, max_seconds=args.max_seconds, kept=kept
    )
    by_year = None
    if len(cohorts) > 1:
        by_year = estimate_by_year(
            cohorts,
            rho=args.rho,
            max_seconds=args.max_seconds,
            on_progress=args.on_progress,
            kept=kept,
        )
    refits = refit_effects(
        estimate,
        cohorts,
        args.refits,
        rng=np.random.default_rng(args.seed or 0),
        on_progress=args.on_progress,
        kept=kept,
    )
    told = question_information(
        model or make_roommate_model(estimate.theta, estimate.features, args.ridge, args.rho),
        cohorts[-1][0],
        on_progress=args.on_progress,
        kept=kept,
    )
    questions = _rows(estimate, by_year, refits, told)
    if args.out is not None:
        names = list(questions[0])
        write_rows(args.out, names, [[row[name] for name in names] for row in questions])
    return {
        "pairs": estimate.n_pairs,
        "years": len(cohorts),
        "gap": estimate.gap,
        "lambda": estimate.ridge,
        "questions": questions,
        "most_useful_first": [row.question.name for row in sorted(told, key=lambda r: r.rank)],
    }


def render_weights(result: dict[str, Any]) -> str:
    """Return one line per question, the most useful first, and a line on the training data."""
    rows = {row["question"]: row for row in result["questions"]}
    width = max(len(name) for name in rows)
    lines = [f"{'question':{width}}  effect (95 % interval), nats per step   adds, nats a student"]
    for name in result["most_useful_first"]:
        row = rows[name]
        shown = "unknown"
        if row["low"] is not None:
            shown = f"{row['effect']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f})"
        lines.append(f"{name:{width}}  {shown:38} {row['added']:.4f}")
        if row.get("drift_low") is not None:
            lines[-1] += (
                f"   {row['drift']:+.3f} a year "
                f"({row['drift_low']:+.3f} to {row['drift_high']:+.3f})"
            )
    years = "1 year" if result["years"] == 1 else f"{result['years']} years"
    lines.append(f"{result['pairs']} pairs of {years}")
    return "\n".join(lines)


def _rows(
    estimate: WeightEstimate,
    by_year: WeightsByYear | None,
    refits: FloatArray,
    told: Sequence[QuestionInformation],
) -> list[dict[str, Any]]:
    years = [] if by_year is None else [year.effects() for year in by_year.years]
    rows = []
    for q, effect in enumerate(estimate.effects()):
        row: dict[str, Any] = {"question": effect.question.name, **_effect_row(effect)}
        if len(refits) > 1:
            row["standard_error_of_refits"] = float(refits[:, q].std(ddof=1))
        row |= {
            "alone": told[q].alone,
            "lost_without": told[q].lost_without,
            "rank": told[q].rank,
            "added": told[q].added,
        }
        if by_year is not None:
            drift = by_year.drift[q]
            low, high = (_known(x) for x in drift.interval)
            row |= {"drift": drift.per_year, "drift_low": low, "drift_high": high}
            row["years_differ_p"] = drift.p_value
            for number, effects in enumerate(years, start=1):
                mine = _effect_row(effects[q])
                row |= {f"year_{number}_{key}": mine[key] for key in ("effect", "low", "high")}
        rows.append(row)
    return rows


def _effect_row(effect: Effect) -> dict[str, float | None]:
    low, high = effect.interval
    return {
        "effect": effect.effect,
        "standard_error": _known(effect.standard_error),
        "low": _known(low),
        "high": _known(high),
        "p_value": effect.p_value,
    }


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
