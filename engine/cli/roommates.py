"""Learn from past roommates, propose pairs, fill rooms, compare, make practice years."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.option_types import number, seconds
from engine.cli.output_paths import check_writable, make_folder, open_checkpoint
from engine.cli.roc_files import write_roc_csv, write_roc_svg
from engine.cli.rooms import add_rooms_arguments, render_rooms, run_rooms
from engine.cli.schema_files import read_questionnaire
from engine.cli.simulate import add_simulate_arguments, run_simulate
from engine.cli.survey_options import add_fixes_argument, print_note, read_year
from engine.cli.weights import add_weights_arguments, render_weights, run_weights
from engine.core.arguments import IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.rules import Rules
from engine.crf.survey import Survey
from engine.datasets.room_files import read_roommates_csv
from engine.datasets.roommate_files import write_pairs_csv, write_weights_csv
from engine.datasets.survey_csv import read_rules_csv, read_surveys
from engine.learning.roommates.defaults import RELATIVE_GAP, RHO, RIDGE
from engine.learning.roommates.evaluation import evaluate_roommates
from engine.learning.roommates.model import load_roommate_model
from engine.learning.roommates.proposal import propose_pairs
from engine.learning.roommates.solvers import SOLVERS
from engine.learning.roommates.training import train_roommates


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-verbs and their options."""
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_train(verbs.add_parser("train", help="learn a model from past years and their pairs"))
    _add_assign(verbs.add_parser("assign", help="propose pairs for a new year"))
    _add_evaluate(verbs.add_parser("evaluate", help="compare a model with the pairs of a year"))
    add_simulate_arguments(
        verbs.add_parser("simulate", help="make years of surveys with known truth")
    )
    weights = verbs.add_parser("weights", help="say how sure weights are, by year and in all")
    _add_cohorts(weights)
    add_weights_arguments(weights)
    rooms = verbs.add_parser("rooms", help="place a new year in the rooms of a building list")
    _add_survey_and_model(rooms)
    add_rooms_arguments(rooms)


def _add_cohorts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cohort",
        action="append",
        required=True,
        metavar="SURVEY.csv:PAIRS.csv",
        help="a past year, its pairs or its roster (student,room); may be given several times",
    )
    parser.add_argument(
        "--schema", type=Path, metavar="SCHEMA.json", help="questions; by default from the surveys"
    )
    add_fixes_argument(parser)


def _add_train(parser: argparse.ArgumentParser) -> None:
    _add_cohorts(parser)
    parser.add_argument(
        "--out", required=True, type=Path, metavar="MODEL.npz", help="model file to write"
    )
    parser.add_argument(
        "--lambda",
        dest="ridge",
        type=number(above=0.0),
        default=RIDGE,
        metavar="LAMBDA",
        help="ridge weight (default %(default)g)",
    )
    parser.add_argument(
        "--rho",
        type=number(at_least=0.0, at_most=1.0),
        default=RHO,
        help="reweighting of the entropy, 0 to 1 (default %(default)g; 1 is Bethe)",
    )
    parser.add_argument(
        "--solver",
        choices=SOLVERS,
        default="auto",
        help="auto (default) solves in theta and, where that stalls, by block-coordinate "
        "Frank-Wolfe; fully-corrective is for a LAMBDA far below 1 in few students",
    )
    parser.add_argument(
        "--gap",
        type=number(above=0.0),
        default=RELATIVE_GAP,
        metavar="RELATIVE_GAP",
        help="certified relative gap to reach (default %(default)g)",
    )
    parser.add_argument("--max-seconds", type=seconds, metavar="S", help="stop after this time")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE.npz",
        help="resume point after an interrupted run; pairwise and fully-corrective leave none",
    )


def _add_assign(parser: argparse.ArgumentParser) -> None:
    _add_survey_and_model(parser)
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="PAIRS.csv",
        help="file to write: student_a,student_b,score,probability",
    )
    parser.add_argument(
        "--constraints",
        type=Path,
        metavar="RULES.csv",
        help="CSV rule,student_a,student_b; rule is lock, forbid, single or same:COLUMN",
    )
    parser.add_argument(
        "--marginals",
        type=Path,
        metavar="FILE.npy",
        help="write the probability of every pair there: students by students, float32",
    )


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    _add_survey_and_model(parser)
    parser.add_argument(
        "--pairs",
        required=True,
        type=Path,
        metavar="PAIRS.csv",
        help="known pairs of that year: two columns of ids; or a roster: student,room",
    )
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder for roc.csv, roc.svg and weights.csv",
    )


def _add_survey_and_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--survey",
        required=True,
        type=Path,
        metavar="SURVEY.csv",
        help="answers of the year, as CSV or XLSX; - for standard input",
    )
    parser.add_argument(
        "--model", required=True, type=Path, metavar="MODEL.npz", help="model file of train"
    )
    add_fixes_argument(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the chosen sub-verb and return what ``--json`` prints.

    Raises
    ------
    InvalidProblemError
        For bad files or options.
    InfeasibleError
        If the rules leave no complete set of pairs.
    """
    actions = {
        "train": _train,
        "assign": _assign,
        "evaluate": _evaluate,
        "simulate": run_simulate,
        "rooms": run_rooms,
        "weights": _weights,
    }
    return actions[args.action](args)


def render(result: dict[str, Any]) -> str:
    """Return one ``name value`` line per entry of the result, or the table of weights."""
    if "most_useful_first" in result:
        return render_weights(result)
    lines = []
    for name, value in result.items():
        if not isinstance(value, dict | list | tuple):
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            lines.append(f"{name.replace('_', ' ')}: {shown}")
    if "dropped_rules" in result:
        lines += [render_rooms(result)] * bool(render_rooms(result))
    return "\n".join(lines)


def _read_cohorts(args: argparse.Namespace) -> list[tuple[Survey, IntArray]]:
    """Read the years that ``--cohort`` names, by ``--schema`` or by the questions they share."""
    files = [_split_cohort(text) for text in args.cohort]
    surveys = [survey for survey, _ in files]
    questionnaire = None
    if args.schema is not None:
        questionnaire = read_questionnaire(args.schema, surveys, args.fixes)
    years = read_surveys(surveys, questionnaire, fixes=args.fixes, on_note=print_note)
    return [
        (year, read_roommates_csv(pairs, year, fixes=args.fixes))
        for year, (_, pairs) in zip(years, files, strict=True)
    ]


def _weights(args: argparse.Namespace) -> dict[str, Any]:
    return run_weights(args, _read_cohorts(args))


def _train(args: argparse.Namespace) -> dict[str, Any]:
    cohorts = _read_cohorts(args)
    check_writable(args.out)
    checkpoint = open_checkpoint(args.checkpoint)
    trained = train_roommates(
        cohorts,
        ridge=args.ridge,
        rho=args.rho,
        solver=args.solver,
        relative_gap=args.gap,
        max_seconds=args.max_seconds,
        rng=np.random.default_rng(args.seed or 0),
        on_progress=args.on_progress,
        checkpoint=checkpoint,
    )
    trained.result.check_learned()
    trained.model.save(args.out)
    return {
        **trained.result.figures(),
        "n_features": len(trained.model.theta),
        "calibration": trained.model.calibration,
    }


def _assign(args: argparse.Namespace) -> dict[str, Any]:
    model = load_roommate_model(args.model)
    survey = read_year(args, model.questionnaire)
    rules = read_rules_csv(args.constraints, survey) if args.constraints else Rules()
    check_writable(args.out)
    if args.marginals is not None:
        check_writable(args.marginals)
    proposal = propose_pairs(model, survey, rules, on_progress=args.on_progress)
    write_pairs_csv(args.out, survey, proposal.pairs, proposal.scores, proposal.probabilities)
    if args.marginals is not None:
        with open(args.marginals, "wb") as file:
            np.save(file, proposal.marginals)
    return {
        "pairs": len(proposal.pairs),
        "weight": proposal.weight,
        "upper_bound": proposal.upper_bound,
        "gap": proposal.gap,
        "calibrated": proposal.is_calibrated,
        "probability_error": float(proposal.probability_error.max(initial=0.0)),
        "n_students": survey.n_students,
        "method": ", ".join(proposal.methods),
    }


def _evaluate(args: argparse.Namespace) -> dict[str, Any]:
    model = load_roommate_model(args.model)
    survey = read_year(args, model.questionnaire)
    pairs = read_roommates_csv(args.pairs, survey, fixes=args.fixes)
    folder = make_folder(args.out)
    evaluation = evaluate_roommates(model, survey, pairs)
    curves = [("Model", evaluation.roc), ("Plain distance", evaluation.baseline_roc)]
    write_roc_csv(folder / "roc.csv", curves)
    write_roc_svg(folder / "roc.svg", curves)
    write_weights_csv(folder / "weights.csv", model.features, model.theta)
    return {
        "auc": evaluation.auc,
        "baseline_auc": evaluation.baseline_auc,
        "hamming_error": evaluation.hamming_error,
        "hamming_chance": evaluation.hamming_chance,
        "pairs": evaluation.n_pairs,
    }


def _split_cohort(text: str) -> tuple[Path, Path]:
    first, colon, second = text.rpartition(":")
    if not colon or not first or not second:
        raise InvalidProblemError(f"--cohort: expected SURVEY.csv:PAIRS.csv, received {text!r}.")
    return Path(first), Path(second)
