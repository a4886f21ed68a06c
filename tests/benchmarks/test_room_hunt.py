"""Small random room problems agree with enumeration, those that once did not among them."""

import pytest

from benchmarks.hunts.rooms import Problem, faults

FOUND = {
    95: "a former placement with free beds was kept though rooms must be full",
    129: "where nobody can be placed, the price of the moves was not counted",
    330: "who is assigned to a room together with somebody whom no room fits was left out as well",
    731: "filling rooms again failed where nobody has a room",
}


@pytest.mark.parametrize("seed", [*FOUND, *range(12)])
def test_a_placement_is_the_best_of_all(seed: int) -> None:
    assert faults(Problem(seed)) == []
