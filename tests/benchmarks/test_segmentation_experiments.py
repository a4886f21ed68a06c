"""The quick forms of the segmentation experiments run, and show what the long forms measure.

Steps limit the work, not seconds: the results are the same on a machine that is slow or busy.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.common.kept_results import KeptResults
from benchmarks.papers.domke2013 import denoising, table2
from benchmarks.papers.tang2015 import horses
from tests.shared_data import shared_data

AMPLE = "200"  # seconds that no run needs


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_horses_quick(tmp_path: Path) -> None:
    data = shared_data("weizmann_horses")
    words = ["--quick", "--data", str(data), "--out", str(tmp_path)]
    words += ["--side", "48", "--steps", "12", "--seconds", AMPLE]
    summary = horses.run(horses.parse(words))
    assert summary["theta_status"] == "converged"
    assert isinstance(gap := summary["theta_relative_gap"], float)
    assert 0.0 <= gap <= 1e-3
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"figure6.csv", "figure6.png", "figure7.png", "summary.json", "kept"}
    rows = (tmp_path / "figure6.csv").read_text().splitlines()
    methods = {row.split(",")[0] for row in rows[1:]}
    truncated = {"domke10", "domke20", "domke40", "domke40-metric"}
    assert methods == {"theta", "MLE-Struct", "MLE-Struct-wavg"} | truncated
    last = {row.split(",")[0]: float(row.split(",")[3]) for row in rows[1:]}
    assert last["theta"] < 0.25


@pytest.mark.slow
def test_table_2_has_every_published_row_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = shared_data("weizmann_horses")
    words = ["--data", str(data), "--out", str(tmp_path), "--seconds", "0.1"]
    words += ["--train", "4", "--test", "2", "--side", "32"]
    fit, left = table2.fit_marginals_on_growing_sets, 20

    def killed_after_twenty(*args: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return fit(*args, **options)

    monkeypatch.setattr(table2, "fit_marginals_on_growing_sets", killed_after_twenty)
    with pytest.raises(KeyboardInterrupt):
        table2.run(table2.parse(words))
    table = tmp_path / "table2.csv"
    first = table.read_text().splitlines()
    assert len(first) == 1 + 20
    left = 10  # only the other ten are fitted
    rows = table2.run(table2.parse(words))
    assert left == 0
    assert table.read_text().splitlines()[:21] == first
    n_rows = len(table2.PUBLISHED) * len(table2.ITERATIONS) + len(table2.PUBLISHED_LOCAL)
    assert len(rows) == n_rows == 30
    errors = [row["test_error"] for row in rows]
    assert all(0.0 < error < 0.75 for error in errors)
    assert len(set(errors)) > 10
    ends = {row["ended"] for row in rows}
    assert ends <= {"converged", "time limit"}
    assert "time limit" in ends  # a tenth of a second is not enough for all


def test_results_of_other_settings_are_neither_mixed_nor_lost(tmp_path: Path) -> None:
    kept = KeptResults(tmp_path, {"seconds": 1})
    assert kept.remember("fit", lambda: {"theta": np.arange(3.0)})["theta"].sum() == 3.0
    again = KeptResults(tmp_path, {"seconds": 1})
    assert again.remember("fit", dict)["theta"].sum() == 3.0
    with pytest.raises(SystemExit, match="other settings"):
        KeptResults(tmp_path, {"seconds": 2})


def test_a_lucky_moment_is_not_an_error_reached_for_good() -> None:
    rows: list[dict[str, float | str]] = [
        {"seconds": float(k), "test_error": error}
        for k, error in enumerate([0.4, 0.1, 0.3, 0.2, 0.1])
    ]
    assert horses.times_to(0.2, rows) == (1.0, 3.0)
    assert horses.times_to(0.05, rows) == (None, None)
    assert horses.times_to(0.2, rows[:3]) == (1.0, None)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_denoising_quick(tmp_path: Path) -> None:
    data = shared_data("bsds_images")
    words = ["--quick", "--data", str(data), "--out", str(tmp_path), "--seconds", AMPLE]
    rows = denoising.run(denoising.parse(words))
    assert (tmp_path / "figure4.png").exists()
    assert len((tmp_path / "table1.csv").read_text().splitlines()) == 1 + len(rows)
    errors = {row["loss"]: row["test"] for row in rows}
    inference = [name for name in errors if name not in {"piecewise", "independent"}]
    assert len(inference) == 9
    for name in inference:
        assert errors[name] < 0.6 * errors["independent"], name
    assert errors["piecewise"] > 0.3  # as published: it couples far too strongly
    assert denoising.run(denoising.parse(words)) == rows
