"""Factor graphs of any arity, and their exact translation into pairwise models."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray, as_float_array
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.graphs.pairwise import PairwiseModel, build_pairwise_model


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Factor: a log table over some variables, one axis per variable of ``variables``, in order.

    Parameters
    ----------
    variables : tuple of int, length k, all different.
    table : ndarray, k axes whose lengths are the variables' numbers of states, float64
        Nats; -inf is impossible.

    Examples
    --------
    >>> Factor((0, 1), np.log([[1.0, 2.0], [3.0, 4.0]])).table.shape
    (2, 2)
    """

    variables: tuple[int, ...]
    table: FloatArray

    def __post_init__(self) -> None:
        """Convert any array of real numbers to the table.

        Raises
        ------
        InvalidProblemError
            If the table holds anything else.
        """
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "table", as_float_array("table", self.table))


@dataclass(frozen=True, slots=True, eq=False)
class FactorGraph:
    """Variables with their numbers of states, and log factors: p(x) ~ exp sum_c table_c(x_c).

    Parameters
    ----------
    cardinalities : ndarray, shape (n,), int64, number of states of each variable.
    factors : tuple of Factor

    Raises
    ------
    InvalidProblemError
        If a factor names a variable twice or an unknown one, or its table has another shape.

    Examples
    --------
    >>> pair = Factor((0, 1), np.log([[1.0, 2.0], [3.0, 4.0]]))
    >>> len(FactorGraph(np.array([2, 2]), (pair,)).factors)
    1
    """

    cardinalities: IntArray
    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        """Raise InvalidProblemError if a factor does not fit its variables."""
        states = np.asarray(self.cardinalities)
        if states.ndim != 1 or not (states.size == 0 or np.issubdtype(states.dtype, np.integer)):
            raise InvalidProblemError("cardinalities: expected a list of whole numbers.")
        if states.size and states.min() < 1:
            variable = int(states.argmin())
            raise InvalidProblemError(
                f"cardinalities: variable {variable} has {states[variable]} states, expected 1 or "
                "more."
            )
        object.__setattr__(self, "cardinalities", states.astype(np.int64))
        for number, factor in enumerate(self.factors):
            if len(set(factor.variables)) != len(factor.variables):
                raise InvalidProblemError(f"Factor {number} names a variable twice.")
            if any(not 0 <= v < len(self.cardinalities) for v in factor.variables):
                raise InvalidProblemError(f"Factor {number} names a variable that does not exist.")
            shape = tuple(int(self.cardinalities[v]) for v in factor.variables)
            if factor.table.shape != shape:
                raise InvalidProblemError(
                    f"Factor {number}: expected a table of shape {shape}, "
                    f"received {factor.table.shape}."
                )
            if np.isnan(factor.table).any() or (factor.table == np.inf).any():
                raise InvalidProblemError(f"Factor {number} has an entry that is not a number.")

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.cardinalities)

    def score(self, labels: IntArray) -> float:
        """Return the log of the unnormalised probability of one configuration (nats)."""
        return float(sum(f.table[tuple(labels[list(f.variables)])] for f in self.factors))

    def restrict(self, kept: list[IntArray]) -> "FactorGraph":
        """Return the model in which each variable has only the listed labels, in that order."""
        tables = [f.table[np.ix_(*(kept[v] for v in f.variables))] for f in self.factors]
        return FactorGraph(
            np.array([len(labels) for labels in kept], dtype=np.int64),
            tuple(Factor(f.variables, t) for f, t in zip(self.factors, tables, strict=True)),
        )

    def condition(self, labels: IntArray, free: IntArray) -> "FactorGraph":
        """Return the model of the variables ``free`` (renumbered) given labels of the others.

        Factors without a free variable are joined into one without variables.
        """
        number = {int(v): k for k, v in enumerate(free)}
        parts, constant = [], 0.0
        for factor in self.factors:
            given = tuple(slice(None) if v in number else labels[v] for v in factor.variables)
            scope = tuple(number[v] for v in factor.variables if v in number)
            table = np.asarray(factor.table[given])
            if scope:
                parts.append(Factor(scope, table))
            else:
                constant += float(table)
        parts.append(Factor((), np.array(constant)))
        return FactorGraph(self.cardinalities[free], tuple(parts))


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseForm:
    """Pairwise model with the same distribution over its first ``n_variables`` nodes.

    ``constant`` is the log of factors without variables: log Z = constant + log Z(model).
    Nodes beyond the variables are auxiliary: one for each factor of three or more variables,
    with one state for each possible configuration; ``configurations`` holds the factor's
    variables and these configurations, one per row.
    """

    model: PairwiseModel
    n_variables: int
    constant: float
    configurations: tuple[tuple[tuple[int, ...], IntArray], ...] = ()

    def extend(self, labels: IntArray) -> IntArray:
        """Return labels of all nodes, the auxiliary ones at the configuration of their factor.

        For an impossible configuration, which scores -inf in any case, the first state is used.
        """
        more = []
        for variables, possible in self.configurations:
            same = (possible == labels[list(variables)]).all(axis=1)
            more.append(int(np.argmax(same)))
        extended: IntArray = np.concatenate([labels, np.array(more, dtype=np.int64)])
        return extended


def to_pairwise(graph: FactorGraph) -> PairwiseForm:
    """Translate a factor graph into a pairwise model, exactly.

    Factors of one and two variables are added to node and edge tables. Each larger factor
    becomes an auxiliary node whose states are its possible configurations, tied to its variables
    by 0 / -inf tables. The local polytope, tree-reweighted and Bethe values of the pairwise model
    are those of the factor graph with one clique per factor.

    Parameters
    ----------
    graph : FactorGraph

    Returns
    -------
    PairwiseForm
        The model (``model``), with the graph's variables as its first nodes.

    Raises
    ------
    InfeasibleError
        If a factor without variables is zero.

    Examples
    --------
    >>> triple = Factor((0, 1, 2), np.zeros((2, 2, 2)))
    >>> form = to_pairwise(FactorGraph(np.array([2, 2, 2]), (triple,)))
    >>> form.model.graph.cardinalities.tolist()
    [2, 2, 2, 8]
    """
    cards = [int(c) for c in graph.cardinalities]
    nodes = [np.zeros(c) for c in cards]
    edges: dict[tuple[int, int], FloatArray] = {}
    configurations = []
    constant = 0.0
    for factor in graph.factors:
        variables = factor.variables
        if len(variables) == 0:
            constant += float(factor.table)
        elif len(variables) == 1:
            nodes[variables[0]] = nodes[variables[0]] + factor.table
        elif len(variables) == 2:
            i, j = variables
            table = factor.table if i < j else factor.table.T
            pair = (min(i, j), max(i, j))
            edges[pair] = edges[pair] + table if pair in edges else table
        else:
            configurations.append((variables, _add_auxiliary(factor, cards, nodes, edges)))
    if constant == -np.inf:
        raise InfeasibleError("Every configuration of this model has probability zero.")
    model = build_pairwise_model(np.array(cards), nodes, edges)
    return PairwiseForm(model, graph.n_variables, constant, tuple(configurations))


def _add_auxiliary(
    factor: Factor,
    cards: list[int],
    nodes: list[FloatArray],
    edges: dict[tuple[int, int], FloatArray],
) -> IntArray:
    """Append a node for the possible configurations of ``factor`` and tie it to its variables.

    Return the configurations, one per row.
    """
    possible = np.argwhere(~np.isneginf(factor.table))
    if len(possible) == 0:  # an impossible factor gets one impossible state
        possible = np.zeros((1, len(factor.variables)), dtype=np.int64)
    auxiliary = len(cards)
    cards.append(len(possible))
    nodes.append(factor.table[tuple(possible.T)])
    for axis, variable in enumerate(factor.variables):
        tie = np.full((cards[variable], len(possible)), -np.inf)
        tie[possible[:, axis], np.arange(len(possible))] = 0.0
        edges[variable, auxiliary] = tie
    return possible
