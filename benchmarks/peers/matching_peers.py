"""Other people's matching solvers, each returning partners and the seconds of its solve."""

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from time import perf_counter

import numpy as np

DRIVER = Path(__file__).with_name("lemon_driver.cpp")
LEMON_HEADER = Path("/usr/include/lemon/matching.h")
SCALE = 2.0**40  # LEMON and rustworkx take whole numbers
RUSTWORKX_SCALE = 2.0**30

Answer = tuple[np.ndarray, float]


@cache
def lemon_binary() -> Path | None:
    """Compile the driver once, in a temporary folder; None without headers or a compiler."""
    if not LEMON_HEADER.exists() or shutil.which("g++") is None:
        return None
    target = Path(tempfile.mkdtemp(prefix="lemon-")) / "driver"
    command = ["g++", "-O3", "-march=native", "-std=c++14", "-w", str(DRIVER), "-o", str(target)]
    subprocess.run(command, check=True)
    return target


def solve_by_lemon(n: int, heads: np.ndarray, tails: np.ndarray, weights: np.ndarray) -> Answer:
    """LEMON's MaxWeightedPerfectMatching on the given edges, weights rounded to 2^-40."""
    table = np.empty((len(heads), 3), dtype=np.int64)
    table[:, 0], table[:, 1] = heads, tails
    table[:, 2] = np.rint(weights * SCALE)
    data = np.array([n, len(heads)], dtype=np.int64).tobytes() + table.tobytes()
    done = subprocess.run([str(lemon_binary())], input=data, capture_output=True, check=True)
    words = done.stdout.split()
    return np.array(words[1:], dtype=np.int64), float(words[0])


def solve_by_rustworkx(scores: np.ndarray) -> Answer:
    """rustworkx on the complete graph, weights rounded to 2^-30."""
    import rustworkx

    n = len(scores)
    graph = rustworkx.PyGraph()
    graph.add_nodes_from(range(n))
    heads, tails = np.triu_indices(n, 1)
    whole = np.rint(scores[heads, tails] * RUSTWORKX_SCALE).astype(int).tolist()
    graph.add_edges_from(list(zip(heads.tolist(), tails.tolist(), whole, strict=True)))
    started = perf_counter()
    pairs = rustworkx.max_weight_matching(graph, max_cardinality=True, weight_fn=int)
    return _partners(n, pairs), perf_counter() - started


def solve_by_networkx(scores: np.ndarray) -> Answer:
    """NetworkX on the complete graph, in floating point."""
    import networkx

    n = len(scores)
    graph = networkx.Graph()
    graph.add_weighted_edges_from(
        (i, j, float(scores[i, j])) for i in range(n) for j in range(i + 1, n)
    )
    started = perf_counter()
    pairs = networkx.max_weight_matching(graph, maxcardinality=True)
    return _partners(n, pairs), perf_counter() - started


def bound_by_scipy(scores: np.ndarray) -> tuple[float, float]:
    """Half of SciPy's best assignment without fixed points: an upper bound, not a matching."""
    from scipy.optimize import linear_sum_assignment

    barred = scores.copy()
    np.fill_diagonal(barred, -1e9)
    started = perf_counter()
    rows, columns = linear_sum_assignment(barred, maximize=True)
    return float(barred[rows, columns].sum() / 2), perf_counter() - started


def _partners(n: int, pairs: object) -> np.ndarray:
    partner = np.full(n, -1, dtype=np.int64)
    for i, j in pairs:  # type: ignore[attr-defined]
        partner[i], partner[j] = j, i
    return partner
