"""The double loop: right where belief propagation converges, honest where it does not."""

import numpy as np
import pytest

from engine.baselines.double_loop import PropagatedExample, Propagation, train_double_loop
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.crf.bipartite import BipartiteItems
from engine.solvers.control import Callbacks, Limits
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.bipartite import BipartiteStructure

DAMPED = Propagation(damping=0.5, max_sweeps=500, tolerance=1e-10)


def make_items(n_examples: int = 3) -> list[tuple[BipartiteItems, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [
        (BipartiteItems(rng.standard_normal((6, 6, 3))), rng.permutation(6))
        for _ in range(n_examples)
    ]


def test_with_converged_marginals_it_finds_the_certified_optimum() -> None:
    data = make_items()
    result = train_double_loop(
        [PropagatedExample(*pair) for pair in data],
        ridge=1.0,
        step_size=0.05,
        inner=DAMPED,
        gradient_norm=1e-6,
        max_steps=2000,
    )
    assert result.status is Status.CONVERGED
    limits = Limits(relative_gap=1e-9)
    optimum = ThetaAscent([BipartiteStructure(*pair) for pair in data], 1.0, limits).solve()
    np.testing.assert_allclose(result.theta, optimum.theta, atol=1e-3)


def test_without_damping_the_inner_loop_fails_at_the_first_step_and_says_so() -> None:
    """At theta = 0 all scores are equal, where undamped messages alternate."""
    result = train_double_loop(
        [PropagatedExample(*pair) for pair in make_items()],
        ridge=1.0,
        step_size=0.05,
        max_steps=20,
    )
    assert result.status is Status.ITERATION_LIMIT
    assert result.steps[0].n_unconverged == 3
    assert result.steps[0].margin_error > 0.1


def test_warm_messages_save_sweeps() -> None:
    data, sweeps = make_items(), []
    for is_warm in (False, True):
        inner = Propagation(damping=0.5, max_sweeps=500, is_warm=is_warm)
        examples = [PropagatedExample(*pair) for pair in data]
        result = train_double_loop(
            examples, ridge=1.0, step_size=0.05, inner=inner, max_steps=100, gradient_norm=1e-12
        )
        sweeps.append(result.sweeps)
    assert sweeps[1] < 0.8 * sweeps[0]


def test_a_step_that_is_too_long_diverges_instead_of_reading_as_converged() -> None:
    examples = [PropagatedExample(*pair) for pair in make_items()]
    result = train_double_loop(examples, ridge=1.0, step_size=2.5, inner=DAMPED, max_steps=60)
    assert result.status is Status.ITERATION_LIMIT
    assert result.steps[-1].gradient_norm > result.steps[0].gradient_norm


def test_it_can_be_stopped_and_refuses_bad_settings() -> None:
    examples = [PropagatedExample(*pair) for pair in make_items()]
    callbacks = Callbacks(should_stop=lambda: True)
    stopped = train_double_loop(examples, ridge=1.0, step_size=0.1, callbacks=callbacks)
    assert (stopped.status, len(stopped.steps)) == (Status.CANCELLED, 1)
    for settings in ({"ridge": 0.0, "step_size": 1.0}, {"ridge": 1.0, "step_size": -1.0}):
        with pytest.raises(InvalidProblemError, match="above 0"):
            train_double_loop(examples, **settings)
    with pytest.raises(InvalidProblemError, match="no observation"):
        train_double_loop([], ridge=1.0, step_size=1.0)
