"""Generator of practice years: surveys, pairs and rosters with known truth."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.option_types import number, room_sizes, whole_number_from
from engine.cli.output_paths import make_folder
from engine.cli.schema_files import read_questionnaire, write_schema
from engine.cli.survey_options import add_fixes_argument, print_note
from engine.core.errors import InvalidProblemError
from engine.datasets.practice_pairs import invent_weights, simulate_pairs
from engine.datasets.room_files import write_roster_csv
from engine.datasets.roommate_files import (
    write_pairs_csv,
    write_rows,
    write_survey_csv,
    write_weights_csv,
)
from engine.datasets.roster_sampler import capacities_for, sample_roster
from engine.datasets.survey_csv import read_survey_csv
from engine.datasets.university import DEFAULT_STRENGTH, SimulatedUniversity, simulate_university


def add_simulate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `run_simulate`: synthetic years, or years split from a file."""
    parser.add_argument(
        "--students", type=whole_number_from(2), metavar="N", help="students per year, even"
    )
    parser.add_argument(
        "--cohorts",
        type=whole_number_from(1),
        default=1,
        metavar="C",
        help="number of years (default %(default)d)",
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
        type=number(),
        help=f"factor on the true weights (default {DEFAULT_STRENGTH:g}); not with --responses",
    )
    parser.add_argument(
        "--blanks",
        type=number(at_least=0.0, below=1.0),
        metavar="SHARE",
        help="share of answers left blank (default 0); not with --responses",
    )
    parser.add_argument(
        "--rooms",
        type=room_sizes,
        metavar="SIZES",
        help="also draw rooms of these sizes in turn, such as 3 or 1,2,2,3, as roster_1.csv and so "
        "on; not with --responses",
    )
    _add_response_arguments(parser)


def _add_response_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that make years from the students of a file."""
    parser.add_argument(
        "--responses",
        type=Path,
        metavar="SURVEY.csv",
        help="split the students of this file into the years, and draw pairs for them",
    )
    parser.add_argument("--schema", type=Path, metavar="SCHEMA.json", help="questions of that file")
    add_fixes_argument(parser)
    parser.add_argument(
        "--same",
        action="append",
        default=[],
        metavar="COLUMN",
        help="partners agree in this column of that file; may be given several times",
    )


def run_simulate(args: argparse.Namespace) -> dict[str, Any]:
    """Write years of surveys and pairs, and beside them the true weights that generated them.

    Raises
    ------
    InvalidProblemError
        If an option is out of range, or the chosen method would ignore it.
    """
    _check_options(args)
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
    write_schema(folder, university.questionnaire)
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
    """Draw rooms for every year under the same truth; return ``has_mixed`` of every year."""
    rng = np.random.default_rng((seed, 1))
    mixed = []
    for year, cohort in enumerate(university.cohorts, start=1):
        scores = university.features.scores(cohort.survey, university.theta)
        capacities = capacities_for(cohort.survey.n_students, sizes)
        sample = sample_roster(scores, capacities, rng=rng)
        write_roster_csv(folder / f"roster_{year}.csv", cohort.survey, sample.room)
        mixed.append(sample.has_mixed)
    return mixed


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that are out of range, or that the chosen method would ignore."""
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
    questionnaire = read_questionnaire(args.schema, [args.responses], args.fixes)
    survey = read_survey_csv(args.responses, questionnaire, fixes=args.fixes, on_note=print_note)
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
    write_schema(folder, questionnaire)
    return {
        "students": len(parts[0]),  # per year, from the option; later years may have one less
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
