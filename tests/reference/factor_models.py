"""Random factor graphs of every kind that bounds have failed on, with their exact log Z."""

from itertools import product

import numpy as np

from engine.core.errors import InvalidProblemError
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.inference.factors.elimination import Elimination


def smokers(n_persons: int, weight: float) -> FactorGraph:
    """Markov logic, "friends of smokers smoke", one variable for each ordered pair of persons.

    A factor is worth ``weight`` unless x smokes, x names y as a friend, and y does not smoke.
    """
    persons = range(n_persons)
    friend = {pair: n_persons + k for k, pair in enumerate(product(persons, persons))}
    factors = []
    for (x, y), named in friend.items():
        if x == y:
            factors.append(Factor((named,), np.full(2, weight)))
            continue
        table = np.full((2, 2, 2), weight)
        table[1, 1, 0] = 0.0
        factors.append(Factor((x, named, y), table))
    return FactorGraph(np.full(n_persons + len(friend), 2), tuple(factors))


def smokers_log_partition(n_persons: int, weight: float) -> float:
    """log Z of `smokers`: a sum over the number of smokers."""
    terms, choices = [], 0.0
    for smoking in range(n_persons + 1):
        broken = smoking * (n_persons - smoking)  # pairs whose friendship costs
        others = n_persons**2 - broken
        terms.append(choices + broken * np.logaddexp(0.0, weight) + others * (np.log(2.0) + weight))
        choices += np.log(max(n_persons - smoking, 1)) - np.log(smoking + 1)
    return float(np.logaddexp.reduce(terms))


def sparse_factors(n: int, per_variable: float, strength: float, seed: int) -> FactorGraph:
    """Random factors of three binary variables each."""
    rng = np.random.default_rng(seed)
    factors = []
    for _ in range(int(per_variable * n)):
        scope = tuple(int(v) for v in rng.choice(n, 3, replace=False))
        factors.append(Factor(scope, strength * rng.normal(size=(2, 2, 2))))
    return FactorGraph(np.full(n, 2), tuple(factors))


def random_factors(rng: np.random.Generator) -> FactorGraph:
    """Up to 9 variables, 4 labels and 4 variables a factor; strengths .1 to 100; zeros and ties."""
    n = int(rng.integers(2, 10))
    cards = rng.integers(1, 5, n) if rng.random() < 0.5 else np.full(n, 2)
    strength = 10.0 ** rng.uniform(-1.0, 2.0)
    zeros = rng.choice((0.0, 0.0, 0.1, 0.4))
    offset = rng.choice((0.0, 0.0, 100.0)) * strength
    factors = []
    for _ in range(int(rng.integers(1, 2 * n + 1))):
        arity = int(rng.integers(1, min(n, 4) + 1))
        scope = tuple(int(v) for v in rng.choice(n, arity, replace=False))
        table = strength * rng.normal(size=[int(cards[v]) for v in scope]) + offset
        if rng.random() < 0.2:
            table = np.round(table / strength) * strength  # ties
        table[rng.random(table.shape) < zeros] = -np.inf
        factors.append(Factor(scope, table))
    return FactorGraph(np.asarray(cards, dtype=np.int64), tuple(factors))


def random_model_of_any_kind(rng: np.random.Generator) -> tuple[FactorGraph, float]:
    """A model with its log Z: one of the kinds above, of a size that can be summed."""
    kind = rng.random()
    if kind < 0.1:
        n, weight = int(rng.integers(2, 8)), 10.0 ** rng.uniform(-1.0, 1.5)
        return smokers(n, weight), smokers_log_partition(n, weight)
    graph = random_factors(rng)
    if kind < 0.3:
        n = int(rng.integers(4, 16))
        strength = 10.0 ** rng.uniform(-1.0, 2.0)
        graph = sparse_factors(n, rng.uniform(1.0, 2.0), strength, int(rng.integers(1 << 30)))
    try:
        return graph, Elimination(graph).log_partition()
    except InvalidProblemError:
        return random_model_of_any_kind(rng)
