"""Results of learning as stored arrays, and the methods that they name."""

import numpy as np

from engine.core.status import Status
from engine.solvers.result import LearningResult, result_from_state, result_state


def make_result(**options):
    return LearningResult(np.ones(2), -1.0, -1.5, True, 3, 4, 0.5, Status.CONVERGED, (), **options)


def test_a_stored_result_keeps_its_methods():
    result = make_result(solver="theta", inner_methods=("potentials", "active set"))
    again = result_from_state(result_state(result))
    assert (again.solver, again.inner_methods) == ("theta", ("potentials", "active set"))
    assert again.method == "theta: potentials, active set"
    assert again.figures()["method"] == again.method


def test_a_result_that_an_earlier_version_stored_names_none():
    state = result_state(make_result(solver="theta"))
    del state["methods"]
    again = result_from_state(state)
    assert (again.solver, again.inner_methods, again.method) == ("", (), "")
    assert again.objective == -1.0
    assert "method" not in again.figures()
