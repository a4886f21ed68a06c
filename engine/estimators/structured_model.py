"""Learning and decoding of any structure with scikit-learn's interface."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from engine.baselines.decoding import LabelledStructure, decode
from engine.core.arguments import FloatArray
from engine.core.options import check_choice, check_number, check_seconds, check_whole
from engine.estimators.base import ObservationEstimator
from engine.objectives.learning_dual import make_learning_dual
from engine.objectives.objective import FixedScores
from engine.objectives.protocol import Structure
from engine.oracles.protocol import Vertex
from engine.solvers.block_orders import AllTogether, BlockOrder, ShuffledOrder
from engine.solvers.control import Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.solvers.fully_corrective_frank_wolfe import FullyCorrectiveFrankWolfe
from engine.solvers.interior_ascent import InteriorAscent, solve_in_theta_or_inside
from engine.solvers.step_rules import LineSearch

SOLVERS = ("block-coordinate", "frank-wolfe", "fully-corrective", "theta", "interior")


class StructuredModel(ObservationEstimator):
    """Estimator of one theta for all structures by approximate maximum likelihood.

    theta maximises the penalised surrogate likelihood; ``result_`` is the certificate.

    Parameters
    ----------
    ridge : float, lambda > 0.
    solver : "block-coordinate", "frank-wolfe", "fully-corrective", "theta" or "interior"
        The last three require more methods of a structure; the error names a missing one. "theta"
        switches to the method of "interior" if it needs many steps and the structures allow it.
    relative_gap : float, stop at this certified gap divided by the size of the log-likelihood.
    max_iterations : int or None
    max_seconds : float or None
    marginal_gap : float, nats, target gap of ``predict_proba``.
    random_state : int, seed of the order of "block-coordinate".

    Attributes
    ----------
    theta_ : ndarray, shape (K,)
    result_ : LearningResult, with both bounds and the status of the solver.

    References
    ----------
    Tang et al. 2015, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures import BipartiteStructure
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> StructuredModel(solver="theta").fit([pairs]).predict([pairs])[0].places.tolist()
    [0, 3]
    """

    def __init__(
        self,
        *,
        ridge: float = 1.0,
        solver: str = "block-coordinate",
        relative_gap: float = 1e-3,
        max_iterations: int | None = 10_000,
        max_seconds: float | None = None,
        marginal_gap: float = 1e-2,
        random_state: int = 0,
    ) -> None:
        self.ridge = ridge
        self.solver = solver
        self.relative_gap = relative_gap
        self.max_iterations = max_iterations
        self.max_seconds = max_seconds
        self.marginal_gap = marginal_gap
        self.random_state = random_state

    def fit(self, X: Sequence[Structure], y: Any = None) -> Self:
        """Learn theta from structures, which hold their observations; ``y`` is not used.

        Raises
        ------
        InvalidProblemError
            If there is no structure, one lacks a part, or an option is out of range.
        """
        check_number("ridge", self.ridge, above=0.0)
        check_choice("solver", self.solver, SOLVERS)
        check_number("relative_gap", self.relative_gap, above=0.0)
        check_whole("max_iterations", self.max_iterations, optional=True)
        check_seconds("max_seconds", self.max_seconds)
        check_number("marginal_gap", self.marginal_gap, above=0.0)
        check_whole("random_state", self.random_state)
        structures: Sequence[Any] = list(X)
        dual = make_learning_dual([structure.observed for structure in structures], self.ridge)
        limits = Limits(self.relative_gap, self.max_iterations, self.max_seconds)
        if self.solver == "theta":
            self.result_ = solve_in_theta_or_inside(structures, self.ridge, limits)
        elif self.solver == "interior":
            self.result_ = InteriorAscent(structures, self.ridge, limits).solve()
        elif self.solver == "fully-corrective":
            self.result_ = FullyCorrectiveFrankWolfe(structures, self.ridge, limits).solve()
        else:
            by_blocks = self.solver == "block-coordinate"
            order: BlockOrder = ShuffledOrder() if by_blocks else AllTogether()
            rng = np.random.default_rng(self.random_state)
            self.result_ = FrankWolfe(structures, dual, order, rng=rng, limits=limits).solve()
        self.theta_ = self.result_.theta
        return self

    def predict(self, X: Sequence[Structure]) -> list[Vertex]:
        """Return the best vertex of every structure, proved optimal by its oracle."""
        check_is_fitted(self)
        return [s.oracle.compute_extreme_point(s.scores(self.theta_)).vertex for s in X]

    def predict_proba(self, X: Sequence[Structure]) -> list[FloatArray]:
        """Return the pseudomarginals of every structure, in the shape of its points."""
        check_is_fitted(self)
        return [self._marginals(structure) for structure in X]

    def score(self, X: Sequence[LabelledStructure], y: Any = None) -> float:
        """Return the mean share of labels that ``predict`` gets right, from 0 to 1."""
        check_is_fitted(self)
        return float(np.mean([1.0 - decode(s, self.theta_).loss for s in X]))

    def _marginals(self, structure: Structure) -> FloatArray:
        scores = structure.scores(self.theta_)
        share = structure.oracle.compute_extreme_point(scores).vertex.share
        fixed = FixedScores(scores, structure.oracle, structure.entropy, structure.start, share)
        solver = FrankWolfe(
            [fixed],
            fixed.free_energy,
            step_rule=LineSearch(is_capped=True),
            limits=Limits(0.0, self.max_iterations, gap=self.marginal_gap),
        )
        solver.solve()
        return solver.iterate.points[0]
