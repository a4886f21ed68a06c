"""``roommates weights``: effects of questions with intervals, by year, and what each tells."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.option_types import above_zero, share
from engine.cli.output_paths import check_writable
from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.crf.roster import Cohort
from engine.datasets.roommate_files import write_rows
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
    """Add the options of the verb beside those that name the years."""
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
        type=int,
        default=0,
        metavar="R",
        help="also draw the years anew so many times, and state the spread (default 0)",
    )
    parser.add_argument(
        "--lambda",
        dest="ridge",
        type=above_zero,
        default=WEAK_RIDGE,
        metavar="LAMBDA",
        help="pull towards zero of the estimate (default 1, far weaker than in learning)",
    )
    parser.add_argument(
        "--rho", type=share, default=1.0, help="reweighting of the entropy, 0 to 1 (default 1)"
    )
    parser.add_argument("--max-seconds", type=float, metavar="S", help="of each estimate")


def run_weights(args: argparse.Namespace, cohorts: Sequence[Cohort]) -> dict[str, Any]:
    """Estimate, and return what ``--json`` prints.

    Raises
    ------
    InvalidProblemError
        For bad files or options.
    """
    if not 0 <= args.refits <= MOST_REFITS:
        raise InvalidProblemError(f"--refits: expected 0 to {MOST_REFITS}, not {args.refits}.")
    if args.out is not None:
        check_writable(args.out)
    model = None if args.model is None else load_roommate_model(args.model)
    estimate = estimate_weights(
        cohorts, rho=args.rho, ridge=args.ridge, max_seconds=args.max_seconds
    )
    by_year = None
    if len(cohorts) > 1:
        by_year = estimate_by_year(
            cohorts, rho=args.rho, max_seconds=args.max_seconds, on_progress=args.on_progress
        )
    refits = refit_effects(
        estimate,
        cohorts,
        args.refits,
        rng=np.random.default_rng(args.seed or 0),
        on_progress=args.on_progress,
    )
    told = question_information(
        model or make_roommate_model(estimate.theta, estimate.features, args.ridge, args.rho),
        cohorts[-1][0],
        on_progress=args.on_progress,
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
    """Return one line per question, the most useful first, and what was learned from."""
    rows = {row["question"]: row for row in result["questions"]}
    width = max(len(name) for name in rows)
    lines = [f"{'question':{width}}  effect (95 % interval), nats per step   adds, nats a student"]
    for name in result["most_useful_first"]:
        row = rows[name]
        shown = "cannot be told"
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
        row: dict[str, Any] = {"question": effect.question.name, **_told(effect)}
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
                mine = _told(effects[q])
                row |= {f"year_{number}_{key}": mine[key] for key in ("effect", "low", "high")}
        rows.append(row)
    return rows


def _told(effect: Effect) -> dict[str, float | None]:
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
