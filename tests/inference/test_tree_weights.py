"""The search for edge probabilities stops when asked, with a bound that holds."""

import pytest

from engine.inference.tree_weights import optimise_tree_weights
from tests.reference.pairwise_models import exact_node_marginals, random_model


@pytest.mark.parametrize("answers", [1, 7])
def test_a_stopped_search_ends_within_a_sweep_and_its_bound_holds(answers):
    model = random_model(0, 6, density=0.9, scale=2.0)
    asked = []

    def should_stop():
        asked.append(True)
        return len(asked) >= answers

    weights = optimise_tree_weights(model, tolerance=0.0, should_stop=should_stop)
    assert len(asked) <= answers + 4  # each solve on the way out asks once more
    assert weights.upper_bound >= exact_node_marginals(model)[0] - 1e-9
