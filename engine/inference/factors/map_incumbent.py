"""Best configuration and best bound of several methods."""

from dataclasses import dataclass, replace
from math import inf

from engine.core.arguments import IntArray, read_only
from engine.core.errors import InfeasibleError
from engine.core.status import Status
from engine.graphs.factor_graph import FactorGraph, PairwiseForm
from engine.inference.map_estimate import MapEstimate, meets_bound

BOUND_SENTENCE = (
    "The bound holds for every configuration; this one was found by local search and is optimal "
    "if its value meets the bound."
)

PROVEN_SENTENCE = "Optimal: its value meets the bound that another method has proven."


@dataclass(slots=True)
class Incumbent:
    """Best configuration and best bound so far, of one thread."""

    form: PairwiseForm
    labels: IntArray | None = None
    value: float = -inf
    bound: float = inf
    method: str = "search"
    guarantee: str = BOUND_SENTENCE

    @property
    def is_proven(self) -> bool:
        """True if the value equals its bound."""
        return meets_bound(self.value, self.bound)

    def offer(self, method: str, labels: IntArray, value: float, guarantee: str = "") -> None:
        """Store a configuration if its score is the best so far."""
        if value > self.value:
            self.labels, self.value = read_only(labels.copy()), value
            self.method, self.guarantee = method, guarantee or BOUND_SENTENCE

    def tighten(self, bound: float) -> None:
        """Store an upper bound of all scores if it is the smallest so far."""
        self.bound = min(self.bound, bound)

    def take(self, other: "Incumbent") -> None:
        """Store the configuration and the bound of another thread where they are better."""
        self.tighten(other.bound)
        if other.labels is not None:
            self.offer(other.method, other.labels, other.value, other.guarantee)

    def offer_estimate(self, method: str, estimate: MapEstimate) -> None:
        """Store labelling and bound of the pairwise form."""
        labels = estimate.labels[: self.form.n_variables]
        self.tighten(estimate.upper_bound + self.form.constant)
        self.offer(method, labels, estimate.value + self.form.constant, estimate.guarantee)

    def estimate(self, graph: FactorGraph, status: Status) -> MapEstimate:
        """Return the best result, with ``status`` if it is not proved optimal.

        Raises
        ------
        InfeasibleError
            If there is no possible configuration.
        """
        if self.labels is None or self.value == -inf:
            raise nothing_found()
        value = graph.score(self.labels)
        answer = MapEstimate(
            labels=self.labels,
            value=value,
            upper_bound=max(value, self.bound),
            status=status,
            iterations=0,
            guarantee=self.guarantee,
            method=self.method,
        )
        if not answer.is_exact:
            return answer
        proof = answer.guarantee if answer.guarantee.startswith("Optimal") else PROVEN_SENTENCE
        return replace(answer, status=Status.CONVERGED, guarantee=proof)


def nothing_found() -> InfeasibleError:
    """Return the error of a search that found no possible configuration."""
    return InfeasibleError(
        "No configuration of probability above zero was found in the time given; there may be none."
    )
