"""Seconds to learn simulated years with a certificate, beside what is aimed at on two cores.

    python -m benchmarks goals learning [--cases strengths mild two ten probabilities]
        [--strengths 1 2 4 8 16 32 64] [--lambdas 100]

strengths: one year of 1,200 students drawn from the published weights times 1 to 64, to 1e-4 in
10 s; mild: times 1 to 4, to 1e-6 in 10 s; two: two years of 2,500 to 1e-4 in 1.5 s; ten: ten in
15 s; probabilities: of pairs of 2,500, to an error of .01 in 30 s. Everything is compiled before.
Processor seconds, of both cores together, tell what is left of the seconds beside other work.
"""

import argparse
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.common.reporting import print_machine, print_table
from engine.crf.survey_features import make_survey_features
from engine.datasets.university import simulate_university
from engine.inference.matching.cascade import compute_group_marginals
from engine.inference.matching.sampling import sample_marginals
from engine.solvers.control import Limits
from engine.solvers.result import LearningResult
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.survey import SurveyStructure

Row = tuple[str, float, float, float, float, str]
HEADER = ("case", "seconds", "processor seconds", "aim", "reached", "status")


def learn(
    students: int, years: int, strength: float, ridge: float, gap: float, seconds: float = 120.0
) -> tuple[LearningResult, float]:
    """Learn simulated years; return the result and the processor seconds of learning alone."""
    rng = np.random.default_rng(1)
    university = simulate_university(students, years, rng=rng, strength=strength)
    features = make_survey_features([year.survey for year in university.cohorts])
    structures = [SurveyStructure(y.survey, y.pairs, features, 1.0) for y in university.cohorts]
    before = time.process_time()
    result = ThetaAscent(structures, ridge, Limits(gap, max_seconds=seconds)).solve()
    return result, time.process_time() - before


def rows_of(case: str, strengths: list[float], lambdas: list[float]) -> Iterator[Row]:
    """Yield what was measured of one case, a row at a time."""
    if case == "probabilities":
        for strength in strengths:
            yield _sample(strength)
        return
    shapes = {
        "strengths": (1_200, 1, strengths, 1e-4, 10.0),
        "mild": (1_200, 1, [s for s in strengths if s <= 4.0], 1e-6, 10.0),
        "two": (2_500, 2, [1.0], 1e-4, 1.5),
        "ten": (2_500, 10, [1.0], 1e-4, 15.0),
    }
    students, years, own_strengths, gap, aim = shapes[case]
    for ridge in lambdas:
        for strength in own_strengths:
            result, spent = learn(students, years, strength, ridge, gap)
            name = f"{years} x {students:,}, strength {strength:g}, lambda {ridge:g}, to {gap:g}"
            status = f"{result.status.name.lower()}, {result.iterations} steps"
            yield name, result.seconds, spent, aim, result.relative_gap, status


def _sample(strength: float) -> Row:
    """Measure the probabilities of a year's pairs under its true weights."""
    rng = np.random.default_rng(1)
    university = simulate_university(2_500, 1, rng=rng, strength=strength)
    survey = university.cohorts[0].survey
    scores = university.features.scores(survey, university.theta)
    started, before = time.perf_counter(), time.process_time()
    nobody = np.empty((0, 2), dtype=np.int64)
    group = compute_group_marginals(scores, 1.0, nobody, is_guide=True)
    sampled = sample_marginals(scores, group.tau, rng=rng)
    took, spent = time.perf_counter() - started, time.process_time() - before
    status = "mixed" if sampled.has_mixed else "not mixed"
    return f"probabilities, strength {strength:g}", took, spent, 30.0, 3.0 * sampled.error, status


def main() -> None:
    """Compile, measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    cases = ["strengths", "mild", "two", "ten", "probabilities"]
    parser.add_argument("--cases", nargs="+", default=cases, choices=cases)
    parser.add_argument("--strengths", type=float, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--lambdas", type=float, nargs="+", default=[100.0])
    args = parser.parse_args()
    print_machine()
    for strength in (1.0, 64.0):
        learn(60, 2, strength, 1.0, 1e-4)
    rows = []
    for case in args.cases:
        for row in rows_of(case, args.strengths, args.lambdas):
            print("; ".join(str(cell) for cell in row), flush=True)
            rows.append(row)
    print_table("Learning beside its aims", HEADER, rows)


if __name__ == "__main__":
    main()
