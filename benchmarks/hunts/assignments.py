"""A hunt for learned assignment problems that do not end certified: sharp, heavy-tailed, repeated.

    python -m benchmarks hunts assignments [--rounds 3] [--kinds heavy clustered ...] [--gap 1e-4]
        [--seconds 30] [--lambdas .01 1] [--rhos .5 .7 1] [--sizes 3 60] [--first-seed 0] [--inner]

Every kind of problem is learned at every lambda and rho through `StructuredModel`. It is an
exception when its certified relative gap stays above the one wanted, or its time limit is overrun
by more than a second. `--inner` solves problems of fixed scores instead, at deviations of 1 to
1,000 nats, and asks for a tenth of the gap, which is then relative to the value.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.common.reporting import print_machine
from engine.core.arguments import FloatArray
from engine.crf.bipartite import BipartiteItems
from engine.estimators.structured_model import StructuredModel
from engine.structures.bipartite import BipartiteStructure

LAMBDAS = (1e-4, 1e-2, 1.0, 100.0)
RHOS = (0.3, 0.5, 0.7, 0.9, 1.0)
DEVIATIONS = (1.0, 10.0, 100.0, 300.0, 1_000.0)


def normal(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Independent normal features."""
    return rng.normal(size=(n, n, k))


def heavy(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Student's t of 1.2 to 3 degrees of freedom."""
    return rng.standard_t(rng.uniform(1.2, 3.0), size=(n, n, k))


def lognormal(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Logarithms of a deviation of 1 to 2."""
    return rng.lognormal(0.0, rng.uniform(1.0, 2.0), size=(n, n, k))


def scaled(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Normal features of deviations from 1 to 300, one a feature."""
    return rng.normal(size=(n, n, k)) * 10.0 ** rng.uniform(0.0, 2.5, size=k)


def clustered(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Minus squared distances of descriptors in a few clusters."""
    centres = 5.0 * rng.normal(size=(max(n // 5, 2), k))
    first, second = (
        centres[rng.integers(len(centres), size=n)] + 0.3 * rng.normal(size=(n, k))
        for _ in range(2)
    )
    return np.asarray(-((first[:, None] - second[None]) ** 2))


def repeated(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """A few different rows, each of them several times, of normal or heavy features."""
    draw = normal if rng.random() < 0.5 else heavy
    return draw(n, k, rng)[rng.integers(max(n // 3, 2), size=n)]


def nearly_repeated(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """The same with a little noise."""
    return repeated(n, k, rng) + 10.0 ** rng.uniform(-6.0, -1.0) * rng.normal(size=(n, n, k))


def rank_one(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Products of what is known of a row and of a column."""
    return np.asarray(rng.normal(size=(n, 1, k)) * rng.normal(size=(1, n, k)))


def counted(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Small whole numbers, which leave many ties."""
    return rng.integers(-2, 3, size=(n, n, k)).astype(np.float64)


KINDS: dict[str, Callable[[int, int, np.random.Generator], FloatArray]] = {
    "normal": normal,
    "heavy": heavy,
    "lognormal": lognormal,
    "scaled": scaled,
    "clustered": clustered,
    "repeated": repeated,
    "nearly-repeated": nearly_repeated,
    "rank-one": rank_one,
    "counted": counted,
}


@dataclass(frozen=True, slots=True)
class Found:
    """What one problem came to: ``gap`` is relative, ``seconds`` are the processor's."""

    label: str
    gap: float
    seconds: float
    is_exception: bool
    status: str


def observe(features: FloatArray, rng: np.random.Generator) -> np.ndarray:
    """Return an assignment: at random, or a best one of random weights and a little noise."""
    n, _, k = features.shape
    if rng.random() < 0.3:
        return rng.permutation(n)
    scores = features @ rng.normal(size=k)
    noise = 10.0 ** rng.uniform(-2.0, 0.5) * float(np.median(np.abs(scores)))
    return linear_sum_assignment(scores + noise * rng.normal(size=(n, n)), maximize=True)[1]


def make_years(kind: str, seed: int, sizes: Sequence[int]) -> list[tuple[FloatArray, np.ndarray]]:
    """Return one to three years of features and their observed assignments."""
    rng = np.random.default_rng([sorted(KINDS).index(kind), seed])
    n = int(sizes[seed % len(sizes)]) if sizes else round(float(np.exp(rng.uniform(1.1, 4.6))))
    k, years = int(rng.integers(1, 13)), int(rng.choice([1, 1, 2, 3]))
    features = [KINDS[kind](n, k, rng) for _ in range(years)]
    return [(f, observe(f, rng)) for f in features]


def learn(
    years: Sequence[tuple[FloatArray, np.ndarray]],
    ridge: float,
    rho: float,
    gap: float,
    seconds: float,
) -> StructuredModel:
    """Learn from years; return the model with its certificate."""
    structures = [BipartiteStructure(BipartiteItems(f), columns, rho) for f, columns in years]
    model = StructuredModel(
        ridge=ridge, solver="theta", relative_gap=gap, max_iterations=None, max_seconds=seconds
    )
    return model.fit(structures)


def hunt(
    kind: str,
    seeds: range,
    gap: float,
    seconds: float,
    lambdas: Sequence[float] = LAMBDAS,
    rhos: Sequence[float] = RHOS,
    sizes: Sequence[int] = (),
) -> Iterator[Found]:
    """Yield every learning of a kind."""
    for seed in seeds:
        years = make_years(kind, seed, sizes)
        for ridge in lambdas:
            for rho in rhos:
                before = time.process_time()
                result = learn(years, ridge, rho, gap, seconds).result_
                spent = time.process_time() - before
                is_proved = result.is_certified and result.relative_gap <= gap
                label = (
                    f"seed {seed} lambda {ridge:g} rho {rho:g}: {len(years)} x "
                    f"{years[0][0].shape}, {result.iterations} steps"
                )
                is_exception = not is_proved or result.seconds > seconds + 1.0
                yield Found(label, result.relative_gap, spent, is_exception, result.status.name)


def hunt_inner(
    kind: str, seeds: range, gap: float, rhos: Sequence[float] = RHOS, sizes: Sequence[int] = ()
) -> Iterator[Found]:
    """Yield every problem of fixed scores of a kind."""
    for seed in seeds:
        features, columns = make_years(kind, seed, sizes)[0]
        scores = features @ np.random.default_rng(seed).normal(size=features.shape[2])
        scores /= max(float(scores.std()), 1e-12)
        best = max(abs(float(scores[linear_sum_assignment(scores, maximize=True)].sum())), 1e-3)
        for deviation in DEVIATIONS:
            for rho in rhos:
                items = BipartiteItems(deviation * scores[:, :, None])
                problem, before = BipartiteStructure(items, columns, rho), time.process_time()
                found = problem.maximise(np.ones(1), None, 0.1 * gap * deviation * best)
                value = float(found.statistics[0]) + found.entropy
                left = (found.log_partition - value) / max(abs(value), 1.0)
                label = f"seed {seed} deviation {deviation:g} rho {rho:g}: {scores.shape}"
                yield Found(
                    label, left, time.process_time() - before, left > gap, f"{found.sweeps} sweeps"
                )


def print_findings(kind: str, found: Sequence[Found]) -> None:
    """Print a line for the kind and one for every exception."""
    times = sorted(one.seconds for one in found)
    gaps = [one.gap for one in found]
    print(
        f"{kind:16} {len(found):5} solved, {sum(one.is_exception for one in found):3} exceptions, "
        f"worst gap {max(gaps):.2g}, CPU s: median {times[len(times) // 2]:.2f}, "
        f"worst {times[-1]:.2f}, in all {sum(times):.0f}",
        flush=True,
    )
    for one in found:
        if one.is_exception:
            print(
                f"    {one.label}: gap {one.gap:.2g}, {one.status}, {one.seconds:.1f} s", flush=True
            )


def main() -> None:
    """Hunt, kind by kind."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--gap", type=float)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--lambdas", type=float, nargs="+", default=LAMBDAS)
    parser.add_argument("--rhos", type=float, nargs="+", default=RHOS)
    parser.add_argument("--sizes", type=int, nargs="+", default=())
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--inner", action="store_true")
    args = parser.parse_args()
    print_machine()
    list(hunt("normal", range(1), 1e-4, 30.0, [1.0], RHOS, [3]))
    seeds = range(args.first_seed, args.first_seed + args.rounds)
    for kind in args.kinds:
        if args.inner:
            found = list(hunt_inner(kind, seeds, args.gap or 1e-6, args.rhos, args.sizes))
        else:
            gap = args.gap or 1e-4
            found = list(hunt(kind, seeds, gap, args.seconds, args.lambdas, args.rhos, args.sizes))
        print_findings(kind, found)


if __name__ == "__main__":
    main()
