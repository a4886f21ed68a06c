"""What rooms of the past teach: weights, ranking, probabilities, and the price of a triple.

    python -m benchmarks goals room_lessons [--students 300] [--years 3] [--seconds 20]

Simulated years under known weights; rooms are drawn jointly from them by a Markov chain. Learned on
all years but the last, judged on the last:

- correlation of learned with true pair scores, each student's own level taken out, which no
  placement of everybody depends on;
- area under the ROC curve of "did they share a room" beside the truth's and plain distance's;
- the chance to share a room as a Markov chain under the learned weights tells it, with its standard
  error, beside the share who did;
- six people in three doubles against two triples, each placed at best under the true weights, with
  what the certificates leave open.
"""

import argparse
from dataclasses import dataclass

import numpy as np

from benchmarks.common.reporting import new_figure, print_machine, print_table, save_figure
from engine.core.arguments import FloatArray, IntArray
from engine.crf.rooms import Rooms
from engine.crf.survey import Survey
from engine.datasets.roster_sampler import capacities_for, sample_roster
from engine.datasets.university import simulate_university
from engine.learning.roommates.evaluation import evaluate_roommates
from engine.learning.roommates.model import RoommateModel
from engine.learning.roommates.training import train_roommates
from engine.metrics.calibration import ReliabilityBin, reliability_bins
from engine.metrics.roc import compute_roc
from engine.rooms.chain import share_probabilities
from engine.rooms.placement import place_in_rooms

MIXES = {"doubles": (2,), "triples": (3,), "one to four": (1, 2, 3, 4)}
BINS = 6


@dataclass(frozen=True, slots=True)
class Years:
    """Surveys, rooms drawn from the true scores of each, and those scores."""

    surveys: tuple[Survey, ...]
    rosters: tuple[IntArray, ...]
    scores: tuple[FloatArray, ...]
    capacities: IntArray


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one mix of rooms taught; see the top of this file."""

    correlation: float
    auc: float
    true_auc: float
    distance_auc: float


@dataclass(frozen=True, slots=True)
class Chances:
    """Chances to share a room against who did, and the chain's own error."""

    bins: tuple[ReliabilityBin, ...]
    expected: float
    happened: int
    largest_error: float
    has_mixed: bool


def simulate(n: int, years: int, sizes: tuple[int, ...], rng: np.random.Generator) -> Years:
    """Draw years and rooms of the given sizes in turn."""
    university = simulate_university(n, years, rng=rng)
    surveys = tuple(cohort.survey for cohort in university.cohorts)
    scores = tuple(university.features.scores(survey, university.theta) for survey in surveys)
    capacities = capacities_for(n, sizes)
    rosters = tuple(sample_roster(values, capacities, rng=rng).room for values in scores)
    return Years(surveys, rosters, scores, capacities)


def learn(years: Years, seconds: float) -> tuple[RoommateModel, Lesson]:
    """Learn from all years but the last and compare on the last."""
    past = list(zip(years.surveys[:-1], years.rosters[:-1], strict=True))
    model = train_roommates(past, max_seconds=seconds).model
    survey, room, truth = years.surveys[-1], years.rosters[-1], years.scores[-1]
    found = evaluate_roommates(model, survey, room)
    i, j = np.triu_indices(len(room), 1)
    shared = room[i] == room[j]
    true_roc = compute_roc(truth[i, j][shared], truth[i, j][~shared])
    learned = without_levels(model.scores(survey))[i, j]
    correlation = float(np.corrcoef(learned, without_levels(truth)[i, j])[0, 1])
    return model, Lesson(correlation, found.auc, true_roc.auc, found.baseline_auc)


def without_levels(scores: FloatArray) -> FloatArray:
    """Return scores less the a_i + a_j that fit the pairs i != j best by least squares."""
    plain = scores.copy()
    np.fill_diagonal(plain, 0.0)
    n = len(plain)
    rows = plain.sum(axis=1)
    level = (rows - rows.sum() / (2 * (n - 1))) / (n - 2)
    return np.asarray(plain - level - level[:, np.newaxis])


def judge_chances(years: Years, model: RoommateModel, seconds: float) -> Chances:
    """Let a chain tell every pair's chance to share a room in the last year."""
    survey, room = years.surveys[-1], years.rosters[-1]
    rooms = Rooms(tuple(f"R{k}" for k in range(len(years.capacities))), years.capacities)
    scores = model.scores(survey) * (model.calibration or 1.0)
    start = place_in_rooms(scores, rooms, gap=0.05, max_seconds=seconds).room
    pairs = np.column_stack(np.triu_indices(len(room), 1))
    shared = share_probabilities(scores, rooms, start, pairs=pairs, max_seconds=seconds)
    outcomes = (room[pairs[:, 0]] == room[pairs[:, 1]]).astype(np.float64)
    return Chances(
        reliability_bins(shared.probabilities, outcomes, BINS),
        float(shared.probabilities.sum()),
        int(outcomes.sum()),
        float(shared.standard_errors.max()),
        shared.has_mixed,
    )


def price_of_triples(scores: FloatArray, seconds: float) -> tuple[float, float]:
    """Return what six people lose at least and at most, nats, in two triples for three doubles.

    ``scores`` (n, n), n a multiple of 6.
    """
    n = len(scores)
    found = []
    for size in (2, 3):
        rooms = Rooms(tuple(f"R{k}" for k in range(n // size)), np.full(n // size, size))
        found.append(place_in_rooms(scores, rooms, gap=0.002, max_seconds=seconds))
    doubles, triples = found
    share = 6.0 / n
    return (
        share * (doubles.weight - triples.upper_bound),
        share * (doubles.upper_bound - triples.weight),
    )


def main() -> None:
    """Print the tables and save the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--years", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    args = parser.parse_args()
    print_machine()
    n = args.students - args.students % 6
    lessons, chances, prices = [], {}, []
    for seed, (name, sizes) in enumerate(MIXES.items()):
        years = simulate(n, args.years, sizes, np.random.default_rng(seed))
        model, lesson = learn(years, args.seconds)
        told = chances[name] = judge_chances(years, model, args.seconds)
        lessons.append(
            [
                name,
                lesson.correlation,
                lesson.auc,
                lesson.true_auc,
                lesson.distance_auc,
                told.expected,
                told.happened,
                told.largest_error,
                told.has_mixed,
            ]
        )
        low, high = price_of_triples(years.scores[-1], args.seconds)
        prices.append([f"year {seed + 1}", low, high])
    print_table(
        f"Rooms of {args.years - 1} years of {n} students, judged on another",
        [
            "rooms",
            "correlation",
            "AUC",
            "AUC of truth",
            "AUC of distance",
            "pairs expected",
            "pairs who did",
            "largest error",
            "mixed",
        ],
        lessons,
    )
    print_table(
        "Chance to share a room, learned weights",
        ["rooms", "told", "did", "from", "to", "pairs"],
        [
            [name, b.predicted, b.observed, b.low, b.high, b.count]
            for name, told in chances.items()
            for b in told.bins
        ],
    )
    print_table(
        "Six people in two triples for three doubles: nats lost",
        ["true weights of", "at least", "at most"],
        prices,
    )
    figure, axes = new_figure(figsize=(5, 5))
    for name, told in chances.items():
        predicted = [b.predicted for b in told.bins]
        spread = [[b.observed - b.low for b in told.bins], [b.high - b.observed for b in told.bins]]
        axes.errorbar(predicted, [b.observed for b in told.bins], spread, marker="o", label=name)
    top = max(b.high for told in chances.values() for b in told.bins)
    axes.plot([0, top], [0, top], color="grey", linewidth=1)
    axes.set_xlabel("chance to share a room")
    axes.set_ylabel("share who did, 95 % range")
    axes.legend()
    save_figure(figure, "room_lessons")


if __name__ == "__main__":
    main()
