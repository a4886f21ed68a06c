"""What is compiled at its first use does not use up the time of the learning that comes first."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.hunts import years
from engine.core.status import Status
from engine.inference.matching import compilation, odd_cuts
from engine.inference.matching import odd_sets as odd_set_module
from engine.solvers import control


@pytest.mark.parametrize(
    ("module", "kernel"),
    [(odd_cuts, "merge_or_cut"), (odd_set_module, "find_small_odd_sets")],
)
def test_compiling_is_no_part_of_a_time_limit(
    monkeypatch: pytest.MonkeyPatch, module: object, kernel: str
) -> None:
    """30 students in identical triples: it once compiled a minute, and stopped at a gap of 220."""
    now, compiled = [0.0], getattr(module, kernel)

    def at_first_slow(*arguments: object) -> object:
        now[0] += 95.0
        monkeypatch.setattr(module, kernel, compiled)
        return compiled(*arguments)

    compilation.compile_for_matchings.cache_clear()
    monkeypatch.setattr(module, kernel, at_first_slow)
    monkeypatch.setattr(control, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    place = sorted(years.KINDS).index("triangles")
    year = years.KINDS["triangles"](np.random.default_rng([place, 230]))
    result = years.learn(year, 0.01, 1e-4, 60.0)
    assert result.status is Status.CONVERGED
    assert result.is_certified
    assert result.relative_gap <= 1e-4
    assert now[0] == 95.0
    assert result.seconds == 0.0
