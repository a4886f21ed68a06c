"""Maximum-weight perfect matching of complete graphs, beside LEMON, rustworkx, NetworkX and SciPy.

    python -m benchmarks peers matching --peers [--sizes 100,300] [--families survey,tied]
    python -m benchmarks peers matching [--sizes 100,300,1000,2500,10000] [--families survey,tied]
                                        [--repeats 5] [--lemon-up-to 1000]

Every answer is first compared with ours; a peer that disagrees by more than 1e-9 is reported and
not timed. Our time covers everything from the dense scores to the certificate; a peer's only its
solve, its graph being built before. `cold` starts from nothing; `warm` follows a 2 % step of the
scores and starts from the last duals. SciPy's assignment is only an upper bound. `sparse` is the
compiled kernel, with its certificate, against LEMON on the same ten best edges a node. The family
`one-hot` is `survey` given as answers instead of as a matrix, which peers cannot take. Peak memory
is that of the process during our calls, scores included.
"""

import argparse
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from statistics import median

import numpy as np

from benchmarks.common.peak_memory import forget_peak, peak_gigabytes
from benchmarks.common.reporting import PeerTable, print_machine
from benchmarks.peers.matching_peers import (
    Answer,
    bound_by_scipy,
    lemon_binary,
    solve_by_lemon,
    solve_by_networkx,
    solve_by_rustworkx,
)
from benchmarks.peers.matching_problems import (
    FAMILIES,
    STEP,
    SURVEY_LEVELS,
    make_scores,
    survey_scores,
    take_step,
)
from engine.oracles.one_hot_scores import OneHotScores
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.oracles.sparse_matching import max_weight_matching

AGREEMENT = 1e-9
RUSTWORKX_UP_TO = 300
NETWORKX_UP_TO = 100
SCIPY_UP_TO = 2500
SPARSE_DEGREE = 10
ONE_HOT = "one-hot"
TARGETS = (
    "our targets on an idle machine: survey 2,500 cold 0.25 s, warm 0.05 s; tied 2,500 2 s; "
    "10,000 cold 4 s, warm 0.7 s, under 2 GB"
)


def main() -> None:
    """Parse the options and run every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="100,300,1000,2500,10000")
    parser.add_argument("--families", default=",".join((*FAMILIES, ONE_HOT)))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--lemon-up-to", type=int, default=1000, help="2500 takes 12 to 25 s a case"
    )
    parser.add_argument("--peers", action="store_true", help="one table of all public peers")
    options = parser.parse_args()
    if options.peers:
        sizes = [int(n) for n in options.sizes.split(",") if int(n) <= options.lemon_up_to]
        families = [name for name in options.families.split(",") if name != ONE_HOT]
        compare_peers(families, sizes, options.repeats).finish()
        return
    print_machine()
    print(TARGETS)
    if lemon_binary() is None:
        print("LEMON is not compared: it needs g++ and the headers of liblemon-dev")
    CompleteGraphMatcher().solve(make_scores("tied", 600))  # compiles
    print("case size ours_s other_s ratio difference")
    for family in options.families.split(","):
        for size in map(int, options.sizes.split(",")):
            if family == ONE_HOT:
                run_one_hot(size, options.repeats)
            else:
                run_case(family, size, options.repeats, options.lemon_up_to)


def compare_peers(families: Sequence[str], sizes: Sequence[int], repeats: int) -> PeerTable:
    """Solve complete graphs, cold, by every peer that is installed and fit for the size."""
    table = PeerTable("matching", ("rustworkx", "networkx"))
    CompleteGraphMatcher().solve(make_scores("tied", 600))  # compiles
    for family in families:
        for n in sizes:
            scores = make_scores(family, n)
            ours = [CompleteGraphMatcher().solve(scores) for _ in range(repeats)]
            table.put_ours(family, n, median(m.seconds for m in ours), ours[0].weight)
            for name, solve in peers_of(n).items():
                partner, seconds = solve(scores)
                weight = float(scores[np.arange(n), partner].sum() / 2)
                table.put(family, n, name, seconds, weight)
            if n <= SCIPY_UP_TO:
                bound, seconds = bound_by_scipy(scores)
                table.put(family, n, "SciPy", seconds, bound, remark="bound only")
    return table


def peers_of(n: int) -> dict[str, Callable[[np.ndarray], Answer]]:
    """Return the peers that are installed and answer graphs of n nodes within minutes."""
    peers: dict[str, Callable[[np.ndarray], Answer]] = {}
    if lemon_binary() is not None:
        heads, tails = np.triu_indices(n, 1)
        peers["LEMON"] = lambda scores: solve_by_lemon(n, heads, tails, scores[heads, tails])
    if n <= RUSTWORKX_UP_TO and find_spec("rustworkx"):
        peers["rustworkx"] = solve_by_rustworkx
    if n <= NETWORKX_UP_TO and find_spec("networkx"):
        peers["NetworkX"] = solve_by_networkx
    return peers


def run_case(family: str, n: int, repeats: int, lemon_up_to: int) -> None:
    """One family at one size: cold against every peer that is fit for the size, then warm."""
    scores = make_scores(family, n)
    forget_peak()
    matchings = [CompleteGraphMatcher().solve(scores) for _ in range(repeats)]
    ours = median(matching.seconds for matching in matchings)
    best = matchings[0].weight
    print_line(f"{family}/cold/certificate", n, ours, None, matchings[0].gap / abs(best))
    print(f"{family}/cold/memory {n} {peak_gigabytes():.2f} GB")
    if n <= lemon_up_to and lemon_binary() is not None:
        heads, tails = np.triu_indices(n, 1)
        answer = solve_by_lemon(n, heads, tails, scores[heads, tails])
        compare(f"{family}/cold/LEMON", scores, ours, answer, best)
    if n <= RUSTWORKX_UP_TO and find_spec("rustworkx"):
        compare(f"{family}/cold/rustworkx", scores, ours, solve_by_rustworkx(scores), best)
    if n <= NETWORKX_UP_TO and find_spec("networkx"):
        compare(f"{family}/cold/NetworkX", scores, ours, solve_by_networkx(scores), best)
    if n <= SCIPY_UP_TO:
        bound, seconds = bound_by_scipy(scores)
        print_line(f"{family}/cold/SciPy-bound", n, ours, seconds, (bound - best) / abs(best))
    if lemon_binary() is not None:
        run_sparse(family, scores, repeats)
    run_warm(family, scores, repeats)


def run_sparse(family: str, scores: np.ndarray, repeats: int) -> None:
    """The kernel alone, on the same candidate edges as LEMON."""
    n = len(scores)
    best = np.array([np.argpartition(-row, SPARSE_DEGREE)[:SPARSE_DEGREE] for row in scores])
    heads = np.concatenate((np.repeat(np.arange(n), SPARSE_DEGREE), np.arange(0, n, 2)))
    tails = np.concatenate((best.ravel(), np.arange(1, n, 2)))
    keys = np.unique(np.minimum(heads, tails) * n + np.maximum(heads, tails))
    heads, tails = keys // n, keys % n
    heads, tails = heads[heads != tails], tails[heads != tails]
    weights = scores[heads, tails]
    edges = np.column_stack((heads, tails))
    ours = [max_weight_matching(n, edges, weights) for _ in range(repeats)]
    answer = solve_by_lemon(n, heads, tails, weights)
    seconds = median(matching.seconds for matching in ours)
    compare(f"{family}/sparse/LEMON", scores, seconds, answer, ours[0].weight)


def run_warm(family: str, scores: np.ndarray, repeats: int) -> None:
    """A chain of 2 % steps, each call started from the duals of the one before; in place."""
    matcher = CompleteGraphMatcher()
    matcher.solve(scores)
    seconds = []
    for direction in range(1, repeats + 1):
        take_step(scores, family, direction)
        warm = matcher.solve(scores)
        seconds.append(warm.seconds)
    cold = CompleteGraphMatcher().solve(scores)
    difference = abs(warm.weight - cold.weight) / abs(cold.weight)
    print_line(f"{family}/warm/own-cold", len(scores), median(seconds), cold.seconds, difference)


def run_one_hot(n: int, repeats: int) -> None:
    """Cold and warm from answers: the matrix is made inside the call, and timed with it."""
    scores = survey_scores(n, SURVEY_LEVELS, 0)
    forget_peak()
    matcher = CompleteGraphMatcher()
    cold = matcher.solve(scores)
    print_line(f"{ONE_HOT}/cold/certificate", n, cold.seconds, None, cold.gap / abs(cold.weight))
    seconds = []
    for direction in range(1, repeats + 1):
        other = survey_scores(n, SURVEY_LEVELS, direction).block
        scores = OneHotScores(scores.codes, (1 - STEP) * scores.block + STEP * other)
        warm = matcher.solve(scores)
        seconds.append(warm.seconds)
    print(f"{ONE_HOT}/warm/memory {n} {peak_gigabytes():.2f} GB")
    cold = CompleteGraphMatcher().solve(scores)
    difference = abs(warm.weight - cold.weight) / abs(cold.weight)
    print_line(f"{ONE_HOT}/warm/own-cold", n, median(seconds), cold.seconds, difference)


def compare(case: str, scores: np.ndarray, ours: float, answer: Answer, best: float) -> None:
    """Print the ratio to a peer whose matching weighs the same as ours."""
    partner, seconds = answer
    weight = float(scores[np.arange(len(scores)), partner].sum() / 2)
    difference = abs(weight - best) / abs(best)
    if difference > AGREEMENT:
        print(f"{case} {len(scores)} disagrees: theirs {weight!r}, ours {best!r}")
        return
    print_line(case, len(scores), ours, seconds, difference)


def print_line(case: str, n: int, ours: float, other: float | None, difference: float) -> None:
    """One line of the table; a dash where there is no peer."""
    theirs = "- -" if other is None else f"{other:.4f} {other / ours:.1f}"
    print(f"{case} {n} {ours:.4f} {theirs} {difference:.1e}", flush=True)


if __name__ == "__main__":
    main()
