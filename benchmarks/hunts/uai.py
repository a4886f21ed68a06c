"""A hunt for wrong answers of inference on factor graphs, against the sum over all configurations.

    python -m benchmarks hunts uai [--minutes 10] [--first-seed 0] [--count N]

Models of up to 9 variables, 4 labels and 4 variables a factor: zeros, ties, strengths of 0.1 to 100
nats, forests, constants, variables of one label. Each is written as a UAI file and read again, some
with evidence, and solved by every method of ``map``, ``pr`` and ``mar`` at several dampings and
limits. Exceptions are a bound on the wrong side, an answer called exact that is not, marginals that
are no distributions, labels whose score is another, propagation called converged that still moves,
and any error but that nothing is possible.
"""

import gzip
import io
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.hunts.hunting import hunt
from engine.core.arguments import FloatArray
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.datasets.uai import read_uai, read_uai_evidence, write_uai
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.inference.factors import methods
from engine.inference.factors.log_partition import (
    EDGE_PROBABILITIES,
    PartitionEstimate,
    marginals,
)
from engine.inference.factors.map_portfolio import map_estimate
from engine.inference.map_estimate import MapEstimate
from tests.reference.factor_models import random_factors

MAX_CONFIGURATIONS = 300_000
ROUNDING = 1e-9  # of the largest number on the way, relatively
MOVES = 1e-4  # of a marginal, after propagation was called converged
ITERATIONS = (1, 2, 5, 30, 300, 2000)
DAMPING = (None, 0.0, 0.3, 0.7, 0.95)


@dataclass(frozen=True)
class Problem:
    """A model with all its scores: log Z, marginals and the best score follow."""

    graph: FactorGraph
    scores: FloatArray  # one axis a variable

    @property
    def size(self) -> float:
        """The largest number that is added up on the way, in nats."""
        tables = [
            np.abs(f.table[np.isfinite(f.table)]).max(initial=0.0) for f in self.graph.factors
        ]
        return 1.0 + float(sum(tables))

    @property
    def best(self) -> float:
        """The best score."""
        return float(self.scores.max())

    @property
    def log_z(self) -> float:
        """The log of the sum of all exponentials."""
        if self.best == -np.inf:
            return -np.inf
        return self.best + float(np.log(np.exp(self.scores - self.best).sum()))

    def marginals(self) -> list[FloatArray]:
        """Return the distribution of each variable."""
        chances = np.exp(self.scores - self.log_z)
        axes = range(chances.ndim)
        return [chances.sum(axis=tuple(a for a in axes if a != v)) for v in axes]


def make_problem(seed: int) -> Problem:
    """Draw a model, write and read it, and condition it on what was seen."""
    rng = np.random.default_rng(seed)
    graph = random_factors(rng)
    if rng.random() < 0.3:
        graph = _as_forest(graph)
    while np.prod(graph.cardinalities, dtype=float) > MAX_CONFIGURATIONS:
        graph = random_factors(rng)
    graph = _written_and_read(graph, rng)
    scores = np.zeros(tuple(graph.cardinalities))
    for factor in graph.factors:
        order = np.argsort(factor.variables)
        shape = np.ones(scores.ndim, dtype=np.int64)
        shape[np.sort(factor.variables).astype(int)] = np.array(factor.table.shape)[order]
        scores = scores + np.transpose(factor.table, order).reshape(shape)
    return Problem(graph, scores)


def _as_forest(graph: FactorGraph) -> FactorGraph:
    """Keep the factors of one and two variables that close no cycle."""
    part = list(range(graph.n_variables))
    kept = []
    for factor in graph.factors:
        if len(factor.variables) == 2:
            one, other = (part[v] for v in factor.variables)
            if one == other:
                continue
            part = [one if p == other else p for p in part]
        if len(factor.variables) <= 2:
            kept.append(factor)
    return FactorGraph(graph.cardinalities, tuple(kept))


def _written_and_read(graph: FactorGraph, rng: np.random.Generator) -> FactorGraph:
    """Return the model as a file holds it, given evidence for some variables now and then."""
    tables = [
        np.maximum(f.table, -600.0) + np.where(f.table == -np.inf, -np.inf, 0.0)
        for f in graph.factors
    ]
    largest = max((float(t.max(initial=-np.inf)) for t in tables), default=0.0)
    if largest > 600.0:  # a file holds numbers up to e^709
        tables = [t - (largest - 600.0) for t in tables]
    factors = tuple(Factor(f.variables, t) for f, t in zip(graph.factors, tables, strict=True))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.uai"
        try:
            write_uai(path, FactorGraph(graph.cardinalities, factors))
        except InvalidProblemError:  # below e^-745
            return graph
        data = path.read_bytes()
    if rng.random() < 0.5:
        data = gzip.compress(data) if rng.random() < 0.5 else b"\xef\xbb\xbf" + data
    read = read_uai(io.BytesIO(data))
    if rng.random() < 0.7 or read.n_variables < 2:
        return read
    seen = np.flatnonzero(rng.random(read.n_variables) < 0.3)[: read.n_variables - 1]
    states = [int(rng.integers(read.cardinalities[v])) for v in seen]
    words = " ".join(f"{v} {x}" for v, x in zip(seen.tolist(), states, strict=True))
    text = f"{len(seen)} {words}" if rng.random() < 0.5 else f"1\n{len(seen)} {words}\n"
    observed = read_uai_evidence(io.StringIO(text), read)
    labels = np.array([observed.get(v, -1) for v in range(read.n_variables)], dtype=np.int64)
    return read.condition(labels, np.flatnonzero(labels < 0)) if observed else read


def map_faults(problem: Problem, rng: np.random.Generator) -> list[str]:
    """Return what is wrong with the best labels by each method that takes the model."""
    wrong = []
    for method in (None, *methods.MAP):
        try:
            found = map_estimate(problem.graph, method=method, max_seconds=20.0, rng=rng)
        except InfeasibleError:
            if problem.best > -np.inf:
                wrong.append(f"map {method}: called impossible, the best is {problem.best}")
            continue
        except InvalidProblemError as error:
            if method != "roof-duality" or "roof-duality needs" not in str(error):
                wrong.append(f"map {method}: {error}")
            continue
        wrong += [f"map {method}: {sentence}" for sentence in _map_faults(problem, found)]
    return wrong


def _map_faults(problem: Problem, found: MapEstimate) -> list[str]:
    slack = ROUNDING * problem.size
    score = float(problem.scores[tuple(found.labels)])
    wrong = []
    if not abs(found.value - score) <= slack:
        wrong.append(f"says {found.value}, its labels have {score}")
    if not found.upper_bound >= problem.best - slack:
        wrong.append(f"bound {found.upper_bound} below the best {problem.best}")
    if found.is_exact and not score >= problem.best - slack - 1e-8 * abs(problem.best):
        wrong.append(f"exact {score}, the best is {problem.best}")
    return wrong


def marginal_faults(problem: Problem, rng: np.random.Generator) -> list[str]:
    """Return what is wrong with log Z and marginals by each method, one damping and limit each."""
    wrong = []
    for method in methods.MARGINALS:
        if method == "frank-wolfe" and rng.random() > 0.1:  # a linear programme a step
            continue
        options: dict[str, Any] = {
            "damping": DAMPING[int(rng.integers(len(DAMPING)))],
            "rho": EDGE_PROBABILITIES[int(rng.integers(len(EDGE_PROBABILITIES)))],
            "max_iterations": int(rng.choice(ITERATIONS[: 4 if method == "frank-wolfe" else None])),
        }
        try:
            found = marginals(problem.graph, method=method, **options)
        except InfeasibleError:
            if problem.log_z > -np.inf and method in {"exact", "trw"}:
                wrong.append(f"{method} {options}: called impossible, log Z is {problem.log_z}")
            continue
        sentences = _marginal_faults(problem, found)
        if method == "bp" and found.is_converged and not found.is_exact:
            sentences += _moves(problem, found, options)
        wrong += [f"{method} {options}: {sentence}" for sentence in sentences]
    return wrong


def _marginal_faults(problem: Problem, found: PartitionEstimate) -> list[str]:
    log_z, slack = problem.log_z, ROUNDING * problem.size
    if log_z == -np.inf:
        return [f"value {found.value} of a model in which nothing is possible"] * found.is_exact
    wrong = []
    if found.upper_bound is not None and not found.upper_bound >= log_z - 1e-3 * slack:
        wrong.append(f"upper bound {found.upper_bound}, log Z is {log_z}")
    if found.lower_bound is not None and not found.lower_bound <= log_z + 1e-3 * slack:
        wrong.append(f"lower bound {found.lower_bound}, log Z is {log_z}")
    for number, (own, card) in enumerate(
        zip(found.marginals, problem.graph.cardinalities, strict=True)
    ):
        is_distribution = own.shape == (card,) and (own >= 0).all() and abs(own.sum() - 1) < 1e-6
        if found.is_converged and not is_distribution:
            wrong.append(f"marginals of variable {number} are {own.tolist()}")
    if found.is_exact:
        if not abs(found.value - log_z) <= slack:
            wrong.append(f"exact {found.value}, log Z is {log_z}")
        worst = max(
            float(np.abs(one - other).max())
            for one, other in zip(found.marginals, problem.marginals(), strict=True)
        )
        if not worst <= slack:
            wrong.append(f"exact, but marginals are off by {worst}")
        if not found.is_converged:
            wrong.append("exact, but not converged")
    return wrong


def _moves(problem: Problem, found: PartitionEstimate, options: dict[str, Any]) -> list[str]:
    """Go on for ten times as many iterations, at a finer tolerance: nothing should move far."""
    from engine.inference.factors import log_partition

    before = log_partition.MESSAGE_TOLERANCE
    log_partition.MESSAGE_TOLERANCE = 1e-12
    try:
        later = marginals(problem.graph, method="bp", **options | {"max_iterations": 20_000})
    finally:
        log_partition.MESSAGE_TOLERANCE = before
    worst = max(
        float(np.abs(one - other).max())
        for one, other in zip(found.marginals, later.marginals, strict=True)
    )
    return [] if worst <= MOVES else [f"converged, but marginals move by {worst} later"]


def faults_of_seed(seed: int) -> list[str]:
    """Return what is wrong with the answers to the model of one seed."""
    problem = make_problem(seed)
    rng = np.random.default_rng([seed, 1])
    return map_faults(problem, rng) + marginal_faults(problem, rng)


if __name__ == "__main__":
    hunt(__doc__ or "", faults_of_seed, "models")
