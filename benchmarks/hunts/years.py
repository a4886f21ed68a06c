"""A hunt for years that do not end certified: random, clustered, near-duplicate and tiny ones.

    python -m benchmarks hunts years [--rounds 3] [--kinds tiny blocks ...] [--gap 1e-4]
        [--seconds 60] [--lambdas 1 100] [--first-seed 0]

Every kind of year is learned at every lambda. A year is an exception when its certified relative
gap stays above the one wanted, or when its time limit is overrun by more than a second. CPU seconds
count both cores.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.common.reporting import print_machine
from engine.crf.questionnaire import Question, Questionnaire
from engine.crf.survey import Survey
from engine.crf.survey_features import make_survey_features
from engine.datasets.university import housing_questionnaire, simulate_university
from engine.learning.roommates.solvers import solve_roommates
from engine.solvers.control import Callbacks, Limits
from engine.solvers.result import LearningResult

Year = tuple[Survey, np.ndarray]
LAMBDAS = (0.01, 0.1, 1.0, 10.0, 100.0)


def make_year(answers: np.ndarray, pairs: np.ndarray, questionnaire: Questionnaire) -> Year:
    """Return answers (n, Q) and pairs as a year."""
    ids = tuple(f"S{k:04d}" for k in range(len(answers)))
    return Survey(ids, questionnaire, answers.astype(np.int16), {}), pairs


def questions(counts: tuple[int, ...]) -> Questionnaire:
    """Return ordinal questions of so many answers each."""
    return Questionnaire(
        tuple(
            Question(f"Q{k}", "ordinal", tuple(str(x) for x in range(levels)))
            for k, levels in enumerate(counts)
        )
    )


def random_answers(n: int, questionnaire: Questionnaire, rng: np.random.Generator) -> np.ndarray:
    """Draw answers evenly."""
    return np.stack([rng.integers(q.n_levels, size=n) for q in questionnaire.questions], axis=1)


def pair_alike(answers: np.ndarray, rng: np.random.Generator, noise: float) -> np.ndarray:
    """Pair everybody with one of those most alike who are left."""
    left = list(rng.permutation(len(answers)))
    pairs = []
    while left:
        i = left.pop()
        apart = np.abs(answers[left] - answers[i]).sum(axis=1) + noise * rng.random(len(left))
        pairs.append((i, left.pop(int(apart.argmin()))))
    return np.array(pairs)


def tiny(rng: np.random.Generator) -> Year:
    """4 to 24 students, few questions, pairs at random or alike."""
    n = 2 * int(rng.integers(2, 13))
    asked = questions(tuple(int(x) for x in rng.integers(2, 6, size=rng.integers(1, 7))))
    answers = random_answers(n, asked, rng)
    if rng.random() < 0.5:
        return make_year(answers, rng.permutation(n).reshape(-1, 2), asked)
    return make_year(answers, pair_alike(answers, rng, 2.0 * rng.random()), asked)


def triangles(rng: np.random.Generator) -> Year:
    """Three identical students at a time, whose pairs cross the triangles where they must."""
    types = 2 * int(rng.integers(1, 7))
    asked = questions((5,) * int(rng.integers(2, 7)))
    answers = np.repeat(random_answers(types, asked, rng), 3, axis=0)
    return make_year(answers, pair_alike(answers, rng, 0.5), asked)


def two_cliques(rng: np.random.Generator) -> Year:
    """Two odd groups of like students and one pair between them."""
    a, b = 2 * rng.integers(1, 9, size=2) + 1
    asked = questions((5,) * int(rng.integers(2, 7)))
    middle = np.array([np.zeros(len(asked.questions)), np.full(len(asked.questions), 4)])
    answers = np.repeat(middle, (a, b), axis=0)
    answers = np.clip(
        answers + rng.integers(-1, 2, size=answers.shape) * (rng.random() < 0.7), 0, 4
    )
    inside = [rng.permutation(a)[: a - 1], a + rng.permutation(b)[: b - 1]]
    rest = np.setdiff1d(np.arange(a + b), np.concatenate(inside))
    pairs = np.concatenate([*(x.reshape(-1, 2) for x in inside), rest[None]])
    return make_year(answers, pairs, asked)


def three_and_three(rng: np.random.Generator) -> Year:
    """Two triangles of identical students beside many others."""
    many = 2 * int(rng.integers(2, 30))
    asked = questions((5,) * int(rng.integers(2, 7)))
    answers = random_answers(many + 2, asked, rng)
    answers = np.concatenate([answers[:-2], np.repeat(answers[-2:], 3, axis=0)])
    return make_year(answers, pair_alike(answers, rng, 0.5), asked)


def near_duplicates(rng: np.random.Generator) -> Year:
    """Students copied with one answer changed at most."""
    n = 2 * int(rng.integers(5, 100))
    asked = questions((5,) * int(rng.integers(3, 11)))
    originals = random_answers(max(n // int(rng.integers(2, 7)), 1), asked, rng)
    answers = originals[rng.integers(len(originals), size=n)]
    where = rng.integers(answers.shape[1], size=n)
    answers[np.arange(n), where] = np.clip(
        answers[np.arange(n), where] + rng.integers(-1, 2, size=n), 0, 4
    )
    return make_year(answers, pair_alike(answers, rng, 0.5), asked)


def clustered(rng: np.random.Generator) -> Year:
    """Partners among the students most alike, the published questions."""
    n = 2 * int(rng.integers(20, 200))
    asked = housing_questionnaire()
    answers = random_answers(n, asked, rng)
    return make_year(answers, pair_alike(answers, rng, 4.0 * rng.random()), asked)


def strong(rng: np.random.Generator) -> Year:
    """Drawn from the published weights times 1 to 1,000."""
    n = 2 * int(rng.integers(20, 200))
    strength = float(10.0 ** rng.uniform(0.0, 3.0))
    year = simulate_university(n, 1, rng=rng, strength=strength).cohorts[0]
    return year.survey, year.pairs


def twenty_four(rng: np.random.Generator) -> Year:
    """24 students, the published questions, pairs at random."""
    asked = housing_questionnaire()
    return make_year(random_answers(24, asked, rng), rng.permutation(24).reshape(-1, 2), asked)


def uniform(rng: np.random.Generator) -> Year:
    """Answers and pairs at random, the published questions."""
    n = 2 * int(rng.integers(20, 200))
    asked = housing_questionnaire()
    return make_year(random_answers(n, asked, rng), rng.permutation(n).reshape(-1, 2), asked)


def wide(rng: np.random.Generator) -> Year:
    """60 questions of five answers, or 10 of nine, of which six matter to 800 to 1,000 students."""
    n = 2 * int(rng.integers(400, 501))
    asked = questions((5,) * 60 if rng.random() < 0.5 else (9,) * 10)
    answers = random_answers(n, asked, rng)
    left = list(rng.permutation(n))
    pairs = []
    while left:
        i = left.pop()
        apart = np.abs(answers[left, :6] - answers[i, :6]).sum(axis=1) + rng.gumbel(size=len(left))
        pairs.append((i, left.pop(int(apart.argmin()))))
    return make_year(answers, np.array(pairs), asked)


KINDS: dict[str, Callable[[np.random.Generator], Year]] = {
    "tiny": tiny,
    "triangles": triangles,
    "two-cliques": two_cliques,
    "3+3+many": three_and_three,
    "near-duplicates": near_duplicates,
    "clustered": clustered,
    "strong": strong,
    "twenty-four": twenty_four,
    "uniform": uniform,
    "wide": wide,
}


def learn(year: Year, ridge: float, gap: float, seconds: float) -> LearningResult:
    """Learn one year; return the result with its certificate."""
    return solve_roommates(
        [year],
        make_survey_features([year[0]]),
        ridge=ridge,
        rho=1.0,
        solver="auto",
        limits=Limits(gap, max_seconds=seconds),
        callbacks=Callbacks(),
        rng=np.random.default_rng(0),
    )


def hunt(
    kinds: list[str],
    seeds: range,
    gap: float,
    seconds: float,
    lambdas: Sequence[float] = LAMBDAS,
) -> Iterator[tuple[str, int, float, int, LearningResult, float]]:
    """Yield kind, seed, lambda, students, result and CPU seconds of every learning."""
    for kind in kinds:
        for seed in seeds:
            year = KINDS[kind](np.random.default_rng([sorted(KINDS).index(kind), seed]))
            for ridge in lambdas:
                before = time.process_time()
                result = learn(year, ridge, gap, seconds)
                took = time.process_time() - before
                yield kind, seed, ridge, year[0].n_students, result, took


def is_exception(result: LearningResult, gap: float, seconds: float) -> bool:
    """Whether the gap is not certified, or the time limit was not kept."""
    is_proved = result.is_certified and result.relative_gap <= gap
    return not is_proved or result.seconds > seconds + 1.0


def main() -> None:
    """Hunt, and print a line per kind and one per exception."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--gap", type=float, default=1e-4)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--lambdas", type=float, nargs="+", default=LAMBDAS)
    parser.add_argument("--first-seed", type=int, default=0)
    args = parser.parse_args()
    print_machine()
    learn(tiny(np.random.default_rng(0)), 1.0, 1e-4, 60.0)
    for kind in args.kinds:
        seeds = range(args.first_seed, args.first_seed + args.rounds)
        found = list(hunt([kind], seeds, args.gap, args.seconds, args.lambdas))
        open_years = [row for row in found if is_exception(row[4], args.gap, args.seconds)]
        times = sorted(row[5] for row in found)
        print(
            f"{kind:16} {len(found):5} learned, {len(open_years):3} exceptions, CPU s: "
            f"median {times[len(times) // 2]:.2f}, worst {times[-1]:.2f}",
            flush=True,
        )
        for _, seed, ridge, n, result, _ in open_years:
            print(
                f"    seed {seed} lambda {ridge:g}: {n} students, gap {result.relative_gap:.2g}, "
                f"{result.status.name} after {result.iterations} steps, {result.seconds:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
