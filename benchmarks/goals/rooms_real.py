"""Rooms on real data: Newcomb's fraternity, and a real survey with invented rooms.

    python -m benchmarks goals rooms_real [--data ../shared/data] [--strengths 1 8 64]
        [--students 300]

Newcomb: 17 men rank each other every week. Rooms are filled by the mutual ranks of an early week;
what is printed is how well the roommates rank each other in the last one, beside 2,000 random
placements in the same rooms. Survey: invented weights times a strength, rooms of three drawn from
them for two halves of the students, learned on one half and judged on the other.
"""

import argparse
from pathlib import Path

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.crf.rooms import Rooms
from engine.datasets.practice_pairs import invent_weights
from engine.datasets.roster_sampler import capacities_for, sample_roster
from engine.datasets.survey_csv import infer_questionnaire, read_survey_csv
from engine.learning.roommates.evaluation import evaluate_roommates
from engine.learning.roommates.training import train_roommates
from engine.rooms.placement import mean_scores, place_in_rooms

DRAWS = 2_000
LAST = 14


def main() -> None:
    """Run what the data allow and say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--strengths", type=float, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--students", type=int, default=300)
    args = parser.parse_args()
    fraternity = args.data / "newcomb_fraternity"
    if fraternity.is_dir():
        show_fraternity(fraternity)
    else:
        print(f"skipped: {fraternity} is not there")
    survey = args.data / "young_people_survey" / "responses.csv"
    if survey.is_file():
        show_survey(survey, args.strengths, args.students)
    else:
        print(f"skipped: {survey} is not there")


def mutual_liking(path: Path) -> FloatArray:
    """Return minus the mean of the two ranks that a pair gives each other, shape (17, 17)."""
    ranks = np.loadtxt(path, delimiter=",")
    return -(ranks + ranks.T) / 2.0


def show_fraternity(folder: Path) -> None:
    """Place by early weeks, judge by the last."""
    weeks = [mutual_liking(folder / f"newcomb_fraternity_week{k:02d}.csv") for k in range(LAST + 1)]
    last, rng = weeks[LAST], np.random.default_rng(0)
    print("mean mutual rank of roommates in week 14 (1 best, 16 worst)")
    for name, sizes in (("doubles", (2,)), ("triples", (3,))):
        capacities = capacities_for(17, sizes)
        room = np.repeat(np.arange(len(capacities)), capacities)
        chance = np.array([liking(last, rng.permutation(room)) for _ in range(DRAWS)])
        low, high = np.quantile(chance, [0.025, 0.975])
        print(f"  {name}: at random {-chance.mean():.2f}, 95 % {-high:.2f} to {-low:.2f}")
        rooms = Rooms(tuple(f"R{k}" for k in range(len(capacities))), capacities)
        for week in (0, 1, 4, LAST):
            # Ranks are shifted so that nobody is better off alone.
            found = place_in_rooms(weeks[week] + 17.0, rooms, gap=1e-9, max_seconds=None)
            value = liking(last, found.room)
            share = float((chance >= value).mean())
            print(f"  {name} by week {week}: {-value:.2f} (random as good: {100 * share:.1f} %)")


def liking(scores: FloatArray, room: IntArray) -> float:
    """Return the mean over men with roommates of their mean score with them."""
    means = mean_scores(scores, room)
    people = np.bincount(room)[room]
    return float(means[people > 1].mean())


def show_survey(path: Path, strengths: list[float], n: int) -> None:
    """Learn from rooms of three drawn at each strength, judge on other students."""
    questionnaire = infer_questionnaire([path], fixes="none")
    survey = read_survey_csv(path, questionnaire, fixes="none")
    rng = np.random.default_rng(0)
    order = rng.permutation(survey.n_students)
    halves = [survey.take(np.sort(order[k * n : (k + 1) * n])) for k in (0, 1)]
    truth = invent_weights(survey, rng=rng)
    print(f"young people, {n} students a half, rooms of three: area under the ROC curve")
    for strength in strengths:
        rosters = []
        for half in halves:
            scores = strength * truth.features.scores(half, truth.theta)
            sample = sample_roster(scores, capacities_for(n, (3,)), rng=rng)
            rosters.append(sample)
        trained = train_roommates([(halves[0], rosters[0].room)], max_seconds=120)
        auc = evaluate_roommates(trained.model, halves[1], rosters[1].room).auc
        draws = [half_of(trained.model.scores(halves[1]), rosters[1].room, rng) for _ in range(200)]
        low, high = np.quantile(draws, [0.025, 0.975])
        print(
            f"  strength {strength:g}: {auc:.3f} (95 % {low:.3f} to {high:.3f}), learned to a gap "
            f"of {trained.result.relative_gap:.1e}, chain mixed {rosters[0].has_mixed}",
            flush=True,
        )


def half_of(scores: FloatArray, room: IntArray, rng: np.random.Generator) -> float:
    """Return the area under the curve of a bootstrap draw of rooms, against all other pairs."""
    i, j = np.triu_indices(len(room), 1)
    together = room[i] == room[j]
    drawn = rng.choice(np.unique(room), size=len(np.unique(room)))
    weight = np.bincount(drawn, minlength=room.max() + 1)
    real, counts = scores[i, j][together], weight[room[i][together]]
    others = np.sort(scores[i, j][~together])
    rank = (np.searchsorted(others, real, "left") + np.searchsorted(others, real, "right")) / (
        2.0 * len(others)
    )
    return float((rank * counts).sum() / counts.sum())


if __name__ == "__main__":
    main()
