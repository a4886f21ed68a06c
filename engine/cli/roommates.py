"""Learn what makes good roommates, propose pairs, fill rooms, compare, make practice years."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.option_types import above_zero, room_sizes, share
from engine.cli.output_paths import check_writable, make_folder, open_checkpoint
from engine.cli.roc_files import write_roc_csv, write_roc_svg
from engine.cli.rooms import add_rooms_arguments, run_rooms
from engine.cli.weights import add_weights_arguments, render_weights, run_weights
from engine.core.arguments import IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.questionnaire import Questionnaire
from engine.crf.rules import Rules
from engine.crf.survey import Survey
from engine.datasets.practice_pairs import invent_weights, simulate_pairs
from engine.datasets.room_files import read_roommates_csv, write_roster_csv
from engine.datasets.roommate_files import (
    write_pairs_csv,
    write_rows,
    write_survey_csv,
    write_weights_csv,
)
from engine.datasets.roster_sampler import capacities_for, sample_roster
from engine.datasets.survey_csv import (
    infer_questionnaire,
    read_rules_csv,
    read_survey_csv,
)
from engine.datasets.university import DEFAULT_STRENGTH, SimulatedUniversity, simulate_university
from engine.learning.roommate_evaluation import evaluate_roommates
from engine.learning.roommate_model import load_roommate_model
from engine.learning.roommate_proposal import propose_pairs
from engine.learning.roommate_solvers import SOLVERS
from engine.learning.roommates import train_roommates


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-verbs and their options."""
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_train(verbs.add_parser("train", help="learn a model from past years and their pairs"))
    _add_assign(verbs.add_parser("assign", help="propose pairs for a new year"))
    _add_evaluate(verbs.add_parser("evaluate", help="compare a model with the pairs of a year"))
    _add_simulate(verbs.add_parser("simulate", help="make years of surveys with known truth"))
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


def _add_train(parser: argparse.ArgumentParser) -> None:
    _add_cohorts(parser)
    parser.add_argument(
        "--out", required=True, type=Path, metavar="MODEL.npz", help="model file to write"
    )
    parser.add_argument(
        "--lambda",
        dest="ridge",
        type=above_zero,
        default=100.0,
        metavar="LAMBDA",
        help="ridge weight (default 100)",
    )
    parser.add_argument(
        "--rho",
        type=share,
        default=1.0,
        help="reweighting of the entropy, 0 to 1 (default 1: Bethe)",
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
        type=above_zero,
        default=1e-4,
        metavar="RELATIVE_GAP",
        help="certified relative gap to reach (default 0.0001)",
    )
    parser.add_argument("--max-seconds", type=float, metavar="S", help="stop after this time")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE.npz",
        help="file from which a killed run goes on; pairwise and fully-corrective leave none",
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
        help="answers of the year; ids in the column id, or in the first one",
    )
    parser.add_argument(
        "--model", required=True, type=Path, metavar="MODEL.npz", help="model file of train"
    )


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--students", type=int, metavar="N", help="students per year, even")
    parser.add_argument(
        "--cohorts", type=int, default=1, metavar="C", help="number of years (default 1)"
    )
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder for survey_1.csv, pairs_1.csv and so on, weights.csv and schema.json",
    )
    parser.add_argument(
        "--strength",
        type=float,
        help=f"factor on the true weights (default {DEFAULT_STRENGTH:g}); not with --responses",
    )
    parser.add_argument(
        "--blanks",
        type=float,
        metavar="SHARE",
        help="share of answers left blank (default 0); not with --responses",
    )
    parser.add_argument(
        "--responses",
        type=Path,
        metavar="SURVEY.csv",
        help="split the students of this file into the years, and draw pairs for them",
    )
    parser.add_argument(
        "--rooms",
        type=room_sizes,
        metavar="SIZES",
        help="also draw rooms of these sizes in turn, such as 3 or 1,2,2,3, as roster_1.csv and so "
        "on; not with --responses",
    )
    parser.add_argument("--schema", type=Path, metavar="SCHEMA.json", help="questions of that file")
    parser.add_argument(
        "--same",
        action="append",
        default=[],
        metavar="COLUMN",
        help="partners agree in this column of that file; may be given several times",
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Do what the chosen sub-verb says and return what ``--json`` prints.

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
        "simulate": _simulate,
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
    return "\n".join(lines)


def _read_cohorts(args: argparse.Namespace) -> list[tuple[Survey, IntArray]]:
    """Read the years that ``--cohort`` names, by ``--schema`` or the questions that they share."""
    files = [_split_cohort(text) for text in args.cohort]
    questionnaire = (
        Questionnaire.from_json(_read_text(args.schema))
        if args.schema
        else infer_questionnaire([survey for survey, _ in files])
    )
    cohorts = []
    for survey_path, pairs_path in files:
        survey = read_survey_csv(survey_path, questionnaire)
        cohorts.append((survey, read_roommates_csv(pairs_path, survey)))
    return cohorts


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
    trained.model.save(args.out)
    return {
        **trained.result.figures(),
        "n_features": len(trained.model.theta),
        "calibration": trained.model.calibration,
    }


def _assign(args: argparse.Namespace) -> dict[str, Any]:
    model = load_roommate_model(args.model)
    survey = read_survey_csv(args.survey, model.questionnaire)
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
    }


def _evaluate(args: argparse.Namespace) -> dict[str, Any]:
    model = load_roommate_model(args.model)
    survey = read_survey_csv(args.survey, model.questionnaire)
    pairs = read_roommates_csv(args.pairs, survey)
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


def _simulate(args: argparse.Namespace) -> dict[str, Any]:
    _check_simulate(args)
    if args.responses:
        return _simulate_from_responses(args)
    folder = make_folder(args.out)
    university = simulate_university(
        args.students,
        args.cohorts,
        rng=np.random.default_rng(args.seed or 0),
        strength=DEFAULT_STRENGTH if args.strength is None else args.strength,
        blank_share=args.blanks or 0.0,
    )
    for year, cohort in enumerate(university.cohorts, start=1):
        write_survey_csv(folder / f"survey_{year}.csv", cohort.survey)
        write_pairs_csv(folder / f"pairs_{year}.csv", cohort.survey, cohort.pairs)
    write_weights_csv(folder / "weights.csv", university.features, university.theta)
    _write_schema(folder, university.questionnaire)
    mixed = [cohort.sample.has_mixed for cohort in university.cohorts]
    if args.rooms:
        mixed += _write_rosters(folder, university, args.rooms, args.seed or 0)
    return {
        "students": args.students,
        "cohorts": args.cohorts,
        "n_features": university.features.n_features,
        "chain_sweeps": [cohort.sample.sweeps for cohort in university.cohorts],
        "chain_has_mixed": all(mixed),
        "out": str(folder),
    }


def _write_rosters(
    folder: Path, university: SimulatedUniversity, sizes: tuple[int, ...], seed: int
) -> list[bool]:
    """Draw rooms for every year under the same truth; return whether each chain has mixed."""
    rng = np.random.default_rng((seed, 1))
    mixed = []
    for year, cohort in enumerate(university.cohorts, start=1):
        scores = university.features.scores(cohort.survey, university.theta)
        capacities = capacities_for(cohort.survey.n_students, sizes)
        sample = sample_roster(scores, capacities, rng=rng)
        write_roster_csv(folder / f"roster_{year}.csv", cohort.survey, sample.room)
        mixed.append(sample.has_mixed)
    return mixed


def _check_simulate(args: argparse.Namespace) -> None:
    """Refuse options that are out of range, or that the given way to make years would ignore."""
    made_up = {"--strength": args.strength, "--blanks": args.blanks, "--rooms": args.rooms}
    of_file = {"--schema": args.schema, "--same": args.same or None}
    for option, value in (made_up if args.responses else of_file).items():
        if value is not None:
            word = "cannot" if args.responses else "can only"
            raise InvalidProblemError(f"simulate: {option} {word} be used with --responses.")
    if args.students is None and not args.responses:
        raise InvalidProblemError("simulate: --students N is required without --responses.")
    if args.blanks is not None and not 0.0 <= args.blanks < 1.0:
        raise InvalidProblemError(f"--blanks: expected a share from 0 to 1, not {args.blanks}.")
    if args.cohorts < 1:
        raise InvalidProblemError(f"--cohorts: expected at least 1, not {args.cohorts}.")
    if args.students is not None and args.students < 2:
        raise InvalidProblemError(f"--students: expected at least 2, not {args.students}.")
    if not args.responses and args.students % 2:
        raise InvalidProblemError(
            f"--students: expected an even number of students, not {args.students}."
        )
    if args.strength is not None and not np.isfinite(args.strength):
        raise InvalidProblemError(f"--strength: expected a finite number, not {args.strength}.")


def _simulate_from_responses(args: argparse.Namespace) -> dict[str, Any]:
    """Split real students into years and draw pairs under invented weights, the same every year."""
    questionnaire = (
        Questionnaire.from_json(_read_text(args.schema))
        if args.schema
        else infer_questionnaire([args.responses], invent_ids=True)
    )
    survey = read_survey_csv(args.responses, questionnaire, invent_ids=True)
    _check_enough(args, survey.n_students)
    rng = np.random.default_rng(args.seed or 0)
    order = rng.permutation(survey.n_students)
    if args.students is not None:
        order = order[: args.students * args.cohorts]
    truth = invent_weights(survey, rng=rng)
    folder = make_folder(args.out)
    pairs = singles = 0
    parts = np.array_split(order, args.cohorts)
    for year, part in enumerate(parts, start=1):
        cohort = survey.take(np.sort(part))
        drawn = simulate_pairs(cohort, rng=rng, same=args.same, weights=truth)
        write_survey_csv(folder / f"survey_{year}.csv", cohort)
        write_pairs_csv(folder / f"pairs_{year}.csv", cohort, drawn.pairs)
        pairs, singles = pairs + len(drawn.pairs), singles + len(drawn.single)
    weights = [
        [n, f"{w:.6f}"] for n, w in zip(questionnaire.names, truth.distance_weights, strict=True)
    ]
    write_rows(folder / "weights.csv", ["question", "distance_weight"], weights)
    _write_schema(folder, questionnaire)
    return {
        "students": len(parts[0]),  # per year, as the option says; later years may have one less
        "cohorts": args.cohorts,
        "n_features": questionnaire.n_features,
        "pairs": pairs,
        "left_over": singles,
        "out": str(folder),
    }


def _check_enough(args: argparse.Namespace, n_students: int) -> None:
    """Refuse more years than the students of the file can fill, before anything is written."""
    wanted = args.students or 2
    if args.cohorts * wanted > n_students:
        raise InvalidProblemError(
            f"--cohorts: {args.cohorts} years of {wanted} students need {args.cohorts * wanted}, "
            f"but {args.responses} has {n_students}."
        )


def _write_schema(folder: Path, questionnaire: Questionnaire) -> None:
    (folder / "schema.json").write_text(questionnaire.to_json() + "\n", encoding="utf-8")


def _split_cohort(text: str) -> tuple[Path, Path]:
    first, colon, second = text.rpartition(":")
    if not colon or not first or not second:
        raise InvalidProblemError(f"--cohort: expected SURVEY.csv:PAIRS.csv, received {text!r}.")
    return Path(first), Path(second)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidProblemError(f"{path.name} cannot be read as text: {error}.") from error
