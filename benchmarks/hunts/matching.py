"""A hunt for matchings that are not optimal, of graphs in every form, against exact fractions.

    python -m benchmarks hunts matching [--minutes 10] [--first-seed 0] [--count N]

Graphs are unions of small ones and trees, whose best matchings dynamic programmes find in exact
fractions: 1 to 40,000 nodes, shuffled. Weights are whole numbers up to 2^44 and beyond, nearly
equal ones, ties, negative ones, floats of all sizes, and -inf. Each is given as edges, to the
NetworkX backend in its three ways, as matrices (coordinates with repeated entries, compressed rows,
dense) and as a file. Every seed also has an assignment problem. A worse answer, a weight
that is not that of the edges, and any error are exceptions.
"""

import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse

import engine
from benchmarks.hunts.hunting import hunt
from engine.datasets.graph_files import read_graph_file
from engine.networkx_backend import BetheHallBackend

Edge = tuple[int, int]
Best = tuple[int, Fraction]  # number of edges, weight
MAX_PART = 9  # nodes of a part that is not a tree
LARGE = 40_000
KINDS: dict[str, Callable[[np.random.Generator, int], list[Any]]] = {
    "up to 2^44": lambda rng, m: rng.integers(0, 2**44, m, endpoint=True).tolist(),
    "either sign up to 2^44": lambda rng, m: rng.integers(-(2**44), 2**44, m).tolist(),
    "nearly equal": lambda rng, m: [
        2 ** int(rng.choice([26, 38, 42, 44])) - v for v in rng.integers(0, 8, m).tolist()
    ],
    "ties": lambda rng, m: rng.integers(1, 4, m).tolist(),
    "negative": lambda rng, m: (-rng.integers(1, 2**44, m)).tolist(),
    "uniform": lambda rng, m: rng.random(m).tolist(),
    "normal": lambda rng, m: rng.normal(size=m).tolist(),
    "floats of all sizes": lambda rng, m: (
        rng.normal(size=m) * 10.0 ** rng.integers(-12, 13, m)
    ).tolist(),
    "last digit": lambda rng, m: (1.0 + rng.integers(0, 4, m) * 2.0**-52).tolist(),
    "least floats": lambda rng, m: (rng.integers(0, 9, m) * 5e-324).tolist(),
    "beyond 2^53": lambda rng, m: [int(v) * 2**20 + int(v) % 7 for v in rng.integers(0, 2**50, m)],
    "some forbidden": lambda rng, m: np.where(
        rng.random(m) < 0.3, -np.inf, rng.integers(-5, 2**44, m)
    ).tolist(),
}


@dataclass(frozen=True)
class Problem:
    """A graph with its weights, the exact optimum, and that among most edges."""

    kind: str
    n: int
    edges: list[Edge]
    weights: list[Any]
    best: Best
    most: Best

    @property
    def is_small(self) -> bool:
        """Return True if the graph is small enough for a dense matrix."""
        return self.n <= 400


def make_problem(seed: int) -> Problem:
    """Draw a problem: small ones mostly, now and then one of tens of thousands of nodes."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([6, 30, 300, 3_000, LARGE], p=[0.4, 0.35, 0.15, 0.07, 0.03]))
    n = int(rng.integers(1, size + 1))
    kind = str(rng.choice(list(KINDS)))
    edges, ranges = [], []
    first = 0
    while first < n:
        is_tree = rng.random() < 0.3
        nodes = min(n - first, int(rng.integers(1, 4 * MAX_PART if is_tree else MAX_PART)))
        begin = len(edges)
        if is_tree:
            edges += [(first + int(rng.integers(k)), first + k) for k in range(1, nodes)]
        else:
            density = rng.uniform(0.3, 1.0)
            pairs = [(i, j) for j in range(nodes) for i in range(j)]
            edges += [(first + i, first + j) for i, j in pairs if rng.random() < density]
        ranges.append((first, nodes, is_tree, begin, len(edges)))
        first += nodes
    weights = KINDS[kind](rng, len(edges))
    best, most = (0, Fraction(0)), (0, Fraction(0))
    for first, nodes, is_tree, begin, end in ranges:
        own = {
            (i - first, j - first): Fraction(w)
            for (i, j), w in zip(edges[begin:end], weights[begin:end], strict=True)
            if w != -np.inf
        }
        solve = _best_of_tree if is_tree else _best_by_subsets
        best = _added(best, solve(nodes, own, False))
        most = _added(most, solve(nodes, own, True))
    order = rng.permutation(n)
    shuffled = rng.permutation(len(edges)).tolist()
    ends = [(int(order[edges[k][0]]), int(order[edges[k][1]])) for k in shuffled]
    return Problem(kind, n, ends, [weights[k] for k in shuffled], best, most)


def _added(one: Best, other: Best) -> Best:
    return one[0] + other[0], one[1] + other[1]


def _larger(one: Best, other: Best, most_edges: bool) -> Best:
    if most_edges:
        return max(one, other)
    return one if one[1] >= other[1] else other


def _best_by_subsets(n: int, weights: dict[Edge, Fraction], most_edges: bool) -> Best:
    @cache
    def best(left: int) -> Best:
        if left == 0:
            return 0, Fraction(0)
        node = (left & -left).bit_length() - 1
        rest = left & ~(1 << node)
        found = best(rest)
        for other in range(node + 1, n):
            weight = weights.get((node, other))
            if weight is not None and rest >> other & 1:
                found = _larger(found, _added((1, weight), best(rest & ~(1 << other))), most_edges)
        return found

    return best((1 << n) - 1)


def _best_of_tree(n: int, weights: dict[Edge, Fraction], most_edges: bool) -> Best:
    """Every node's parent has a smaller number: children come first from the end."""
    free = [(0, Fraction(0))] * n  # the best below a node that stays alone
    gain: list[list[tuple[int, Best]]] = [[] for _ in range(n)]  # by children that may be its mates
    whole = list(free)
    parent = {j: i for i, j in weights}
    for node in range(n - 1, -1, -1):
        whole[node] = free[node]
        for child, weight in gain[node]:
            without = free[node][0] - whole[child][0], free[node][1] - whole[child][1]
            mated = _added(_added(without, free[child]), weight)
            whole[node] = _larger(whole[node], mated, most_edges)
        if node in parent:
            above = parent[node]
            free[above] = _added(free[above], whole[node])
            gain[above].append((node, (1, weights[above, node])))
        elif node:
            free[0] = _added(free[0], whole[node])  # another part: it only adds
            whole[0] = free[0]
    return whole[0] if n else (0, Fraction(0))


def _weight(problem: Problem, chosen: list[int]) -> Fraction:
    return sum((Fraction(problem.weights[k]) for k in chosen), Fraction(0))


def _forms(problem: Problem) -> dict[str, Any]:
    """Return the graph as other libraries hold it; matrices where it is small."""
    edges = np.array(problem.edges, dtype=np.int64).reshape(-1, 2)
    graph = nx.empty_graph(problem.n)
    graph.add_weighted_edges_from(
        (i, j, w) for (i, j), w in zip(problem.edges, problem.weights, strict=True)
    )
    forms: dict[str, Any] = {"NetworkX": graph}
    is_exact = all(w == -np.inf or float(w) == w for w in problem.weights)
    if not is_exact or not len(edges):
        return forms
    weights = np.array(problem.weights, dtype=np.float64)
    rows, columns = edges.T
    shape = (problem.n, problem.n)
    forms["coordinates"] = scipy.sparse.coo_array((weights, (rows, columns)), shape=shape)
    finite = weights > -np.inf
    half = np.where(finite, weights / 2, weights)
    if (half + half == weights).all():  # not so of the least float
        forms["repeated entries"] = scipy.sparse.coo_array(
            (np.r_[half, half], (np.r_[rows, rows], np.r_[columns, columns])), shape=shape
        )
    forms["compressed rows"] = scipy.sparse.csr_array(forms["coordinates"])
    if problem.is_small:
        dense = np.zeros(shape)
        dense[rows, columns] = dense[columns, rows] = weights
        forms["dense"] = dense
    return forms


def faults(problem: Problem) -> list[str]:
    """Return one sentence for everything that is wrong with an answer of any form."""
    wrong = []
    place = {frozenset(edge): k for k, edge in enumerate(problem.edges)}
    forms = _forms(problem)
    found = engine.max_weight_matching(problem.n, problem.edges, problem.weights, "any")
    wrong += _compared(problem, "edges", found.edge_indices.tolist(), problem.best[1])
    if not found.weight == found.upper_bound == _rounded(problem.best[1]):
        wrong.append(f"{problem.kind}: edges: says {found.weight}, {found.upper_bound}")
    for name, form in forms.items():
        weight = engine.max_weight_matching(form, kind="any").weight
        if weight != _rounded(problem.best[1]):
            wrong.append(f"{problem.kind}: {name}: {weight}, not {float(problem.best[1])}")
    ours = BetheHallBackend.convert_from_nx(forms["NetworkX"])
    has_forbidden = any(w == -np.inf for w in problem.weights)
    for most, expected in ((False, problem.best), (True, problem.most)):
        if most and has_forbidden:
            continue  # such an edge counts as one there: the answer is NetworkX's own
        pairs = BetheHallBackend.max_weight_matching(ours, most)
        chosen = [place[frozenset(pair)] for pair in pairs]
        wrong += _compared(problem, f"backend, {most}", chosen, expected[1])
        if most and len(chosen) != expected[0]:
            wrong.append(f"{problem.kind}: backend: {len(chosen)} edges, not {expected[0]}")
    wrong += _faults_of_least(problem, place)
    if problem.n <= 300:
        wrong += _faults_of_file(problem)
    return wrong


def _rounded(exact: Fraction) -> float:
    return float(exact)


def _compared(problem: Problem, name: str, chosen: list[int], best: Fraction) -> list[str]:
    ends = [node for k in chosen for node in problem.edges[k]]
    if len(set(ends)) != len(ends):
        return [f"{problem.kind}: {name}: a node has two mates"]
    if any(problem.weights[k] == -np.inf for k in chosen):
        return [f"{problem.kind}: {name}: a forbidden edge is chosen"]
    weight = _weight(problem, chosen)
    if weight != best:
        return [f"{problem.kind}, {problem.n} nodes: {name}: {weight} is not {best}"]
    return []


def _faults_of_least(problem: Problem, place: dict[frozenset[int], int]) -> list[str]:
    """NetworkX's least weight among most edges is the largest of the negated weights."""
    if any(w == -np.inf for w in problem.weights):
        return []
    graph = nx.empty_graph(problem.n)
    graph.add_weighted_edges_from(
        (i, j, -w) for (i, j), w in zip(problem.edges, problem.weights, strict=True)
    )
    pairs = BetheHallBackend.min_weight_matching(BetheHallBackend.convert_from_nx(graph))
    chosen = [place[frozenset(pair)] for pair in pairs]
    return _compared(problem, "backend, least", chosen, problem.most[1])


def _faults_of_file(problem: Problem) -> list[str]:
    """The same edges in a file of the two formats, read as the command line reads them."""
    kept = [k for k, w in enumerate(problem.weights) if w != -np.inf]
    rows = [(*problem.edges[k], repr(problem.weights[k])) for k in kept]
    dimacs = f"p edge {problem.n} {len(kept)}\n"
    dimacs += "".join(f"e {i + 1} {j + 1} {weight}\n" for i, j, weight in rows)
    table = "u,v,weight\n" + "".join(f'"node {i}","#{j}",{weight}\n' for i, j, weight in rows)
    wrong = []
    graph = read_graph_file(io.BytesIO(dimacs.encode()))
    found = engine.max_weight_matching(graph.n_nodes, graph.edges, graph.weights, "any")
    if sum(map(Fraction, graph.weights[found.edge_indices].tolist())) != problem.best[1]:
        wrong.append(f"{problem.kind}: DIMACS: {found.weight} is not {float(problem.best[1])}")
    read = read_graph_file(io.BytesIO(table.encode()))
    if [Fraction(w) for w in read.weights.tolist()] != [Fraction(problem.weights[k]) for k in kept]:
        wrong.append(f"{problem.kind}: CSV: a weight changed")
    return wrong


def assignment_faults(seed: int) -> list[str]:
    """A complete bipartite problem of 1 to 6 rows and columns, against all assignments."""
    rng = np.random.default_rng([seed, 1])
    n_rows, n_columns = (int(k) for k in rng.integers(1, 7, 2))
    kinds = [kind for kind in KINDS if kind != "beyond 2^53"]
    kind = str(rng.choice(kinds))
    scores = np.array(KINDS[kind](rng, n_rows * n_columns), dtype=np.float64)
    scores = scores.reshape(n_rows, n_columns)
    best = _best_assignment(scores if n_rows <= n_columns else scores.T)
    try:
        found = engine.assign(scores)
    except engine.InfeasibleError:
        return [] if best is None else [f"{kind}: assign: infeasible, possible is {best}"]
    rows = np.flatnonzero(found.columns >= 0)
    exact = sum(map(Fraction, scores[rows, found.columns[rows]].tolist()), Fraction(0))
    if exact != best or found.weight != float(exact) or found.upper_bound != found.weight:
        return [f"{kind}: assign: {exact}, says {found.weight}, the best is {best}"]
    return []


def _best_assignment(scores: np.ndarray) -> Fraction | None:
    @cache
    def best(row: int, taken: int) -> Fraction | None:
        if row == len(scores):
            return Fraction(0)
        found = None
        for column in range(scores.shape[1]):
            if not taken >> column & 1 and scores[row, column] > -math.inf:
                rest = best(row + 1, taken | 1 << column)
                if rest is not None:
                    total = rest + Fraction(scores[row, column])
                    found = total if found is None else max(found, total)
        return found

    return best(0, 0)


def faults_of_seed(seed: int) -> list[str]:
    """Return what is wrong with the answers to the problems of one seed."""
    return faults(make_problem(seed)) + assignment_faults(seed)


if __name__ == "__main__":
    hunt(__doc__ or "", faults_of_seed, "graphs")
