"""What the comparison with toulbar2 prints of a model's published values."""

import numpy as np
import pytest

from benchmarks.common.kept_results import KeptResults
from benchmarks.peers import map_estimates
from engine.datasets.uai import write_uai


def test_a_row_says_what_the_data_carry(tmp_path, monkeypatch, capsys):
    graph = map_estimates.spin_glass(3, 2, 0)
    path = tmp_path / "glass.uai"
    write_uai(path, graph)
    best = map_estimates.map_estimate(graph)
    path.with_name("glass.uai.PR").write_text("PR\n100.00")
    path.with_name("glass.uai.MPE").write_text("MPE\n9 " + " ".join(map(str, best.labels)))
    monkeypatch.setattr(
        map_estimates, "solve_by_toulbar2", lambda *_: (best.value - 1.0, best.value)
    )
    map_estimates.compare_all([path], 5.0, KeptResults(tmp_path / "kept", {}))
    printed = capsys.readouterr().out
    assert f"| +1.0000 | {best.value:.4f}, below log Z |" in printed
    assert "ours better in 1, equal in 0, worse in 0; proved by us 1, by toulbar2 0" in printed


def test_the_published_log_z_is_read_in_nats_with_its_rounding(tmp_path):
    path = tmp_path / "glass.uai"
    assert map_estimates.published_ceiling(path) == np.inf
    path.with_name("glass.uai.PR").write_text("PR\n2.50")
    assert map_estimates.published_ceiling(path) == pytest.approx(2.51 * np.log(10.0))
    assert "ABOVE" in map_estimates._published(np.nan, 5.0, 5.1)
