"""Place the students of a survey in the rooms of a building list."""

import argparse
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.option_types import number, seconds
from engine.cli.output_paths import check_writable, open_checkpoint
from engine.cli.survey_options import read_year
from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.room_rules import WEIGHT, RoomRules
from engine.crf.rooms import Rooms
from engine.crf.survey import Survey
from engine.datasets.room_files import (
    read_preferences_csv,
    read_previous_csv,
    read_requests_csv,
    read_rooms_csv,
    write_placement_csv,
)
from engine.datasets.room_rule_files import (
    designation_column,
    read_room_rules_csv,
    rooms_that_offer,
    rules_of_columns,
)
from engine.learning.roommates.model import load_roommate_model
from engine.rooms.chain import share_probabilities
from engine.rooms.placement import MAX_SECONDS, RELATIVE_GAP, Placement, place_in_rooms

CHAIN_SHARE = 0.25  # share of the seconds that the probabilities get
CHAIN_SECONDS = 10.0
RULE_WORDS = {"requests": "request", "locks": "lock", "assigned": "room"}  # values in files


def add_rooms_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files and options of ``roommates rooms``."""
    for option, metavar, text in (
        (
            "--rooms",
            "ROOMS.csv",
            "building list: a line for each room or bed, with columns such as Room, Beds, Max "
            "Capacity, Hall, Gender, Features and Status",
        ),
        ("--out", "PLACEMENT.csv", "file to write: student,room,score,probability"),
    ):
        parser.add_argument(option, required=True, type=Path, metavar=metavar, help=text)
    for option, metavar, text in (
        (
            "--constraints",
            "RULES.csv",
            "CSV rule,student_a,student_b; rule is lock, forbid, single, room, offline, kept, "
            "same:COLUMN, need:COLUMN, designate:COLUMN, alike:COLUMN or order:COLUMN",
        ),
        ("--requests", "REQUESTS.csv", "CSV student,wants and, optionally, kind: wish or must"),
        ("--preferences", "PREFERENCES.csv", "CSV student,rank and one column of the rooms"),
        ("--previous", "PLACEMENT.csv", "placement so far: student,room"),
        ("--checkpoint", "FILE.npz", "resume point after an interrupted run"),
    ):
        parser.add_argument(option, type=Path, metavar=metavar, help=text)
    for option, default, text in (
        ("--move-cost", None, "what each student costs who leaves their room, nats (default 0)"),
        (
            "--request-weight",
            WEIGHT,
            "what a wish that is granted is worth, nats (default %(default)g)",
        ),
        (
            "--preference-weight",
            WEIGHT,
            "what a first preference is worth, nats (default %(default)g)",
        ),
    ):
        parser.add_argument(
            option, type=number(at_least=0.0), default=default, metavar="C", help=text
        )
    parser.add_argument(
        "--gap",
        type=number(above=0.0),
        default=RELATIVE_GAP,
        metavar="RELATIVE_GAP",
        help="stop at this certified relative gap (default %(default)g)",
    )
    parser.add_argument(
        "--max-seconds",
        type=seconds,
        default=MAX_SECONDS,
        metavar="S",
        help="stop after this processor time, seconds (default %(default)g)",
    )
    parser.add_argument(
        "--max-work",
        type=number(above=0.0),
        metavar="W",
        help="stop after so much counted work, about a processor second each: with the same --seed "
        "the same placement on every machine (default: no such limit)",
    )
    parser.add_argument(
        "--allow-unplaced",
        action="store_true",
        help="leave as few as possible without a room, those with needs last, and leave out locks, "
        "assigned rooms and requests that other rules contradict, instead of failing",
    )


def run_rooms(args: argparse.Namespace) -> dict[str, Any]:
    """Place the students as the options require and return what ``--json`` prints."""
    model = load_roommate_model(args.model)
    survey = read_year(args, model.questionnaire, min_students=1)
    rooms = rooms_that_offer(survey, read_rooms_csv(args.rooms))
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
        max_work=args.max_work,
        rng=np.random.default_rng(args.seed or 0),
        on_progress=args.on_progress,
        checkpoint=checkpoint,
    )
    scores = model.scores(survey) * (1.0 if model.calibration is None else model.calibration)
    chain_seconds = min(CHAIN_SHARE * args.max_seconds, CHAIN_SECONDS)
    probabilities = _probabilities(scores, rooms, placement, survey, chain_seconds, args.seed or 0)
    write_placement_csv(
        args.out, survey, rooms, placement.room, placement.student_scores, probabilities
    )
    figures = _figures(placement, rules, homeless, survey.ids, args.seed or 0)
    return figures | {"notes": _notes(rooms, rules)}


def _notes(rooms: Rooms, rules: RoomRules) -> list[str]:
    """Return what the building list says and no rule uses, as sentences."""
    column = designation_column(rooms)
    if not column or any(rule.room_column == column for rule in rules.designations):
        return []
    return [
        f"The rooms' column {column} was not used, because no column of the survey has its values. "
        f"Name one with the rule designate:COLUMN,{column}."
    ]


def render_rooms(result: dict[str, Any]) -> str:
    """Return the skipped rules and the reasons for missing rooms, one sentence a line."""
    dropped = (rule["reason"] for rule in result["dropped_rules"])
    told = [*result["notes"], *dropped, *result["conflicts"]]
    return "\n".join(told)


def _figures(
    placement: Placement, rules: RoomRules, homeless: IntArray, ids: Sequence[str], seed: int
) -> dict[str, Any]:
    """Return the figures of a placement; students of lost rooms (``homeless``) count as moved."""
    n_unplaced = len(placement.unplaced)
    needy = {need.student for need in rules.needs}
    return {
        "n_rooms": placement.n_rooms,
        "n_placed": len(placement.room) - n_unplaced,
        "n_unplaced": n_unplaced,
        "n_moved": placement.n_moved + len(homeless),
        "n_extra_beds": placement.n_extra_beds,
        "least_extra_beds": placement.least_extra_beds,
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
        "most_placed": placement.most_placed,
        "n_with_needs": len(needy),
        "n_with_needs_placed": len(needy.difference(placement.unplaced)),
        "unplaced": [ids[student] for student in placement.unplaced],
        "dropped_rules": [
            {
                "rule": RULE_WORDS[dropped.rule[0]],
                "students": [ids[student] for student in dropped.students],
                "reason": dropped.sentence,
            }
            for dropped in placement.dropped
        ],
        "seed": seed,
        "is_repeatable": placement.is_repeatable,
        "work": placement.work,
    }


def _read_rules(args: argparse.Namespace, survey: Survey, rooms: Rooms) -> RoomRules:
    """Combine the rules from the columns, the rules file, the requests and the preferences."""
    rules = rules_of_columns(survey, rooms)
    if args.constraints:
        more = read_room_rules_csv(args.constraints, survey, rooms)
        chosen = {rule.room_column for rule in more.designations}
        own = tuple(rule for rule in rules.designations if rule.room_column not in chosen)
        rules = replace(rules, designations=own)
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
    survey: Survey,
    seconds: float,
    seed: int,
) -> FloatArray:
    """Return each student's mean probability of sharing with the roommates, NaN for those alone."""
    found = share_probabilities(
        scores,
        rooms,
        placement.room,
        placement.rules,
        attributes=survey.attributes,
        max_seconds=seconds,
        rng=np.random.default_rng(seed),
    )
    ends: IntArray = found.pairs.T.ravel()
    n = survey.n_students
    total = np.bincount(ends, weights=np.tile(found.probabilities, 2), minlength=n)
    counts = np.bincount(ends, minlength=n)
    return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
