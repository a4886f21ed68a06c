"""Items of two sides: scores, statistics, and what is refused."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.crf.bipartite import BipartiteItems, check_assignment


def test_scores_and_statistics_are_adjoint() -> None:
    """<A theta, tau> = <theta, A^T tau>, for vertices as for any tau."""
    rng = np.random.default_rng(0)
    items = BipartiteItems(rng.standard_normal((4, 4, 3)))
    theta, tau = rng.standard_normal(3), rng.random((4, 4))
    assert (items.scores(theta) * tau).sum() == pytest.approx(theta @ items.statistics(tau))
    columns = rng.permutation(4)
    vertex = np.eye(4)[columns]
    np.testing.assert_allclose(items.assignment_statistics(columns), items.statistics(vertex))
    assert (items.n_items, items.n_features) == (4, 3)


def test_items_keep_their_own_read_only_features() -> None:
    features = np.zeros((2, 2, 1))
    items = BipartiteItems(features)
    features[0, 0, 0] = 5.0
    assert items.features[0, 0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        items.features[0, 0, 0] = 1.0


@pytest.mark.parametrize(
    "features", [np.zeros((2, 3, 1)), np.zeros((0, 0, 1)), np.full((2, 2, 1), np.inf), np.eye(2)]
)
def test_bad_features_are_refused(features: np.ndarray) -> None:
    with pytest.raises(InvalidProblemError, match="features"):
        BipartiteItems(features)


@pytest.mark.parametrize("columns", [[0, 0], [0, 2], [0], [-1, 0]])
def test_what_is_no_permutation_is_refused(columns: list[int]) -> None:
    with pytest.raises(InvalidProblemError, match="permutation"):
        check_assignment(np.array(columns), 2)
