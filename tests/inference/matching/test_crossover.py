"""From a point inside the matching polytope to a solution that holds its odd sets."""

from dataclasses import replace

import numpy as np
import pytest

from engine.inference.matching import polytope
from engine.inference.matching.crossover import solution_near
from engine.inference.matching.interior import solve_from_inside
from engine.inference.matching.newton import follow_path, read_marginals
from engine.inference.matching.newton_point import uniform_point
from engine.inference.matching.odd_sets import EXACT_UP_TO


def make_scores(n_triangles, rng):
    """Nodes in threes that like their own kind: an odd set binds at every three."""
    kind = np.repeat(np.arange(n_triangles), 3)
    noise = rng.normal(size=(len(kind), len(kind)))
    scores = 6.0 * (kind[:, None] == kind) + (noise + noise.T) / 2.0
    np.fill_diagonal(scores, 0.0)
    return scores


@pytest.mark.parametrize("seed", range(4))
def test_a_point_from_inside_is_a_solution_of_scores_nearby(seed):
    rng = np.random.default_rng(seed)
    scores, rho = make_scores(4, rng), rng.uniform(0.5, 1.0, 12)
    scores[0, 3] = scores[3, 0] = -np.inf
    rough = solve_from_inside(scores, rho, 1e-3, exact_up_to=EXACT_UP_TO)
    point = solution_near(rough, scores, rho)
    assert len(point.sets) == 4
    assert (point.targets < 1.0).all()
    assert np.abs(read_marginals(point, rho) - rough.tau).max() < 1e-9
    assert (point.scores == -np.inf).sum() == 2
    reached = follow_path(point, scores, rho, 1e-10)
    assert reached.residual <= 1e-10
    assert reached.scores is scores


def test_the_optimum_is_held_where_the_path_stood_still(monkeypatch):
    """It once ended inside, and the next solve began where this one had."""
    rng = np.random.default_rng(5)
    scores, rho = make_scores(4, rng), np.ones(12)
    start = uniform_point(12, rho)
    wanted = polytope.solve_over_polytope(start, scores, rho)
    legs = polytope._follow_legs

    def stand_still(*args):
        return replace(legs(*args), is_solved=False)

    monkeypatch.setattr(polytope, "_follow_legs", stand_still)
    found = polytope.solve_over_polytope(start, scores, rho)
    assert found.point.scores is scores
    assert found.proof.holds
    assert found.value == pytest.approx(wanted.value, abs=1e-9)
    assert found.upper_bound >= wanted.value
    assert found.upper_bound - found.value < 1e-8
    assert np.abs(found.tau - wanted.tau).max() < 1e-6
