"""Place the students of a survey in the rooms of a building list."""

import argparse
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.option_types import above_zero, from_zero
from engine.cli.output_paths import check_writable, open_checkpoint
from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.crf.survey import Survey
from engine.datasets.room_files import (
    read_preferences_csv,
    read_previous_csv,
    read_requests_csv,
    read_rooms_csv,
    write_placement_csv,
)
from engine.datasets.room_rule_files import read_room_rules_csv, rules_of_columns
from engine.datasets.survey_csv import read_survey_csv
from engine.learning.roommates.model import load_roommate_model
from engine.rooms.chain import share_probabilities
from engine.rooms.placement import Placement, place_in_rooms

CHAIN_SHARE = 0.25  # of the seconds, for the probabilities
CHAIN_SECONDS = 10.0


def add_rooms_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files and options of ``roommates rooms``."""
    for option, metavar, text in (
        ("--rooms", "ROOMS.csv", "building list: room,capacity and any further columns"),
        ("--out", "PLACEMENT.csv", "file to write: student,room,score,probability"),
    ):
        parser.add_argument(option, required=True, type=Path, metavar=metavar, help=text)
    for option, metavar, text in (
        (
            "--constraints",
            "RULES.csv",
            "CSV rule,student_a,student_b; rule is lock, forbid, single, room, offline, kept, "
            "same:COLUMN, need:COLUMN, designate:COLUMN or alike:COLUMN",
        ),
        ("--requests", "REQUESTS.csv", "CSV student,wants and, optionally, kind: wish or must"),
        ("--preferences", "PREFERENCES.csv", "CSV student,rank and one column of the rooms"),
        ("--previous", "PLACEMENT.csv", "placement so far: student,room"),
        ("--checkpoint", "FILE.npz", "file from which a killed run goes on"),
    ):
        parser.add_argument(option, type=Path, metavar=metavar, help=text)
    for option, default, text in (
        ("--move-cost", None, "what each student costs who leaves their room, nats (default 0)"),
        ("--request-weight", 1.0, "what a wish that is granted is worth, nats (default 1)"),
        ("--preference-weight", 1.0, "what a first preference is worth, nats (default 1)"),
    ):
        parser.add_argument(option, type=from_zero, default=default, metavar="C", help=text)
    parser.add_argument(
        "--gap",
        type=above_zero,
        default=0.005,
        metavar="RELATIVE_GAP",
        help="stop at this certified relative gap (default 0.005)",
    )
    parser.add_argument(
        "--max-seconds", type=float, default=120.0, metavar="S", help="stop after (default 120)"
    )
    parser.add_argument(
        "--allow-unplaced",
        action="store_true",
        help="leave as few as possible without a room instead of failing",
    )


def run_rooms(args: argparse.Namespace) -> dict[str, Any]:
    """Do what the options say and return what ``--json`` prints."""
    model = load_roommate_model(args.model)
    survey = read_survey_csv(args.survey, model.questionnaire)
    rooms = read_rooms_csv(args.rooms)
    rules = _read_rules(args, survey, rooms)
    previous, homeless = None, np.empty(0, dtype=np.int64)
    if args.previous:
        previous, homeless = read_previous_csv(args.previous, survey, rooms)
    if args.move_cost is not None and previous is None:
        raise InvalidProblemError("--move-cost can only be used with --previous.")
    check_writable(args.out)
    checkpoint = open_checkpoint(args.checkpoint)
    placement = place_in_rooms(
        (model, survey),
        rooms,
        rules,
        previous=previous,
        move_cost=args.move_cost or 0.0,
        allow_unplaced=args.allow_unplaced,
        gap=args.gap,
        max_seconds=args.max_seconds,
        rng=np.random.default_rng(args.seed or 0),
        on_progress=args.on_progress,
        checkpoint=checkpoint,
    )
    scores = model.scores(survey) * (model.calibration or 1.0)
    seconds = min(CHAIN_SHARE * args.max_seconds, CHAIN_SECONDS)
    probabilities = _probabilities(scores, rooms, placement, rules, survey, seconds, args.seed or 0)
    write_placement_csv(
        args.out, survey, rooms, placement.room, placement.student_scores, probabilities
    )
    return _figures(placement, rules, homeless)


def _figures(placement: Placement, rules: RoomRules, homeless: IntArray) -> dict[str, Any]:
    """Tell the placement; who lived in a room that is gone (``homeless``) has moved as well."""
    n_unplaced = len(placement.unplaced)
    return {
        "n_rooms": placement.n_rooms,
        "n_placed": len(placement.room) - n_unplaced,
        "n_unplaced": n_unplaced,
        "n_moved": placement.n_moved + len(homeless),
        "weight": placement.weight,
        "upper_bound": placement.upper_bound,
        "relative_gap": placement.relative_gap,
        "seconds": placement.seconds,
        "score": placement.score,
        "extras": placement.extras,
        "status": placement.status.value,
        "requests_honoured": int(placement.honoured.sum()),
        "designations": [rule.room_column for rule in rules.designations],
        "needs": sorted({rule.column for rule in rules.needs}),
        "conflicts": [conflict.sentence for conflict in placement.conflicts],
    }


def _read_rules(args: argparse.Namespace, survey: Survey, rooms: Rooms) -> RoomRules:
    """Join what the columns, the rules file, the requests and the preferences say."""
    rules = rules_of_columns(survey, rooms)
    if args.constraints:
        more = read_room_rules_csv(args.constraints, survey, rooms)
        joined: dict[str, Any] = {}
        for field in fields(rules):
            mine, theirs = getattr(rules, field.name), getattr(more, field.name)
            if isinstance(mine, tuple):
                joined[field.name] = (*mine, *(x for x in theirs if x not in mine))
        rules = replace(rules, **joined)
    if args.requests:
        found = read_requests_csv(args.requests, survey, args.request_weight)
        rules = replace(rules, requests=found)
    if args.preferences:
        liked = read_preferences_csv(args.preferences, survey, rooms, args.preference_weight)
        rules = replace(rules, preferences=liked)
    return rules


def _probabilities(
    scores: FloatArray,
    rooms: Rooms,
    placement: Placement,
    rules: RoomRules,
    survey: Survey,
    seconds: float,
    seed: int,
) -> FloatArray:
    """Return each student's mean probability of sharing with the roommates, NaN for those alone."""
    found = share_probabilities(
        scores,
        rooms,
        placement.room,
        rules,
        attributes=survey.attributes,
        max_seconds=seconds,
        rng=np.random.default_rng(seed),
    )
    ends: IntArray = found.pairs.T.ravel()
    n = survey.n_students
    total = np.bincount(ends, weights=np.tile(found.probabilities, 2), minlength=n)
    counts = np.bincount(ends, minlength=n)
    return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
