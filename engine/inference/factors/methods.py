"""Methods for factor graphs: what each computes, what it proves, and what it needs of a model.

`log_partition` and `map_estimate` check a method's needs before it runs, and refuse a model by a
sentence that names everything that is missing. Help texts list the methods from here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from engine.core.errors import InvalidProblemError
from engine.graphs.factor_graph import FactorGraph


@dataclass(frozen=True, slots=True)
class Need:
    """Property that a method needs.

    Parameters
    ----------
    words : str, such as "variables of one or two labels".
    missing : callable returning '' for a model that has it, otherwise words about the first part of
        the model that lacks it; None if only the method itself finds out, while it prepares.
    """

    words: str
    missing: Callable[[FactorGraph], str] | None


@dataclass(frozen=True, slots=True)
class Method:
    """A method, by the name that options have.

    Parameters
    ----------
    name : str
    proves : str, its guarantee in words.
    needs : tuple of Need
    """

    name: str
    proves: str
    needs: tuple[Need, ...] = ()

    def check(self, graph: FactorGraph) -> None:
        """Raise InvalidProblemError, naming everything that is missing, if it cannot run."""
        reasons = [
            f"{need.words}: {reason}"
            for need in self.needs
            if need.missing is not None and (reason := need.missing(graph))
        ]
        if reasons:
            raise InvalidProblemError(f"method: {self.name} needs {'; and '.join(reasons)}.")

    def in_words(self) -> str:
        """Return its name, guarantee and needs on one line, for help texts."""
        needs = " and ".join(need.words for need in self.needs)
        return f"{self.name} ({self.proves}{'; needs ' if needs else ''}{needs})"


def _wide_variable(graph: FactorGraph) -> str:
    wide = np.flatnonzero(graph.cardinalities > 2)
    return f"variable {wide[0]} has {graph.cardinalities[wide[0]]}" if len(wide) else ""


def _large_factor(graph: FactorGraph) -> str:
    for number, factor in enumerate(graph.factors):
        if len(factor.variables) > 2:
            return f"factor {number} has {len(factor.variables)}"
    return ""


TWO_LABELS = Need("variables of one or two labels", _wide_variable)
PAIRS = Need("factors of one or two variables", _large_factor)
SMALL_WIDTH = Need("tables that fit into memory when variables are eliminated", None)


def _by_name(methods: Iterable[Method]) -> MappingProxyType[str, Method]:
    return MappingProxyType({method.name: method for method in methods})


MAP = _by_name((
    Method("roof-duality", "an upper bound, and labels of every optimum", (TWO_LABELS, PAIRS)),
    Method("lp", "an upper bound, by a linear programme"),
    Method("expansion", "no move of one label improves it"),
    Method("exact", "the optimum", (SMALL_WIDTH,)),
))  # fmt: skip
"""Methods of `map_estimate`; without a name, they share the work until the optimum is proved."""

MARGINALS = _by_name((
    Method("trw", "an upper bound of log Z"),
    Method("bp", "log Z of forests, otherwise nothing"),
    Method("mean-field", "a lower bound of log Z"),
    Method("frank-wolfe", "an upper bound of log Z, by MAP calls only"),
    Method("exact", "log Z", (SMALL_WIDTH,)),
))  # fmt: skip
"""Methods of `log_partition` and `marginals`; the first is the default."""
