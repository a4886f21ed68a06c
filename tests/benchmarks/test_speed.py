"""The speed benchmarks at tiny sizes: they check agreement before they print a time."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.common.reporting import PeerTable
from benchmarks.goals import training
from benchmarks.peers import grid_oracle, map_estimates, matching, rooms, tree_reweighted
from benchmarks.peers.room_problems import SHAPES
from engine.datasets.university import simulate_university

GAP = 0.3  # ten times what the slowest reaches in its second: busy machines pass


@pytest.fixture(scope="module")
def trained() -> dict[str, dict]:
    """Bounds of every solver on two years of twelve students."""
    university = simulate_university(12, 2, rng=np.random.default_rng(1))
    data = [(year.survey, year.pairs) for year in university.cohorts]
    results = {}
    for name in training.SOLVERS:
        result = training.make_solver(name, data, 1.0).solve()
        results[name] = {"upper": result.objective, "lower": result.lower_bound}
    return results


def test_no_solver_of_learning_contradicts_another(trained: dict[str, dict]) -> None:
    training.check_agreement(trained)
    best = trained["theta"]["upper"]
    for name, row in trained.items():
        assert row["upper"] - row["lower"] <= GAP * abs(best), name


def test_a_solver_that_contradicts_another_stops_the_benchmark(trained: dict[str, dict]) -> None:
    wrong = trained["theta"]["upper"] + 1e-3
    with pytest.raises(SystemExit, match="contradict"):
        training.check_agreement(trained | {"wrong": {"upper": wrong, "lower": wrong}})


def test_training_is_measured_in_a_process_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    results = {"theta": training.run_apart("theta", 12, 10.0)}
    training.check_agreement(results)
    assert results["theta"]["gap"] <= training.GAPS[-1]
    training.print_table(12, results)
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("theta")
    assert " - " not in line  # every gap was reached


def test_matchings_agree_with_every_peer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--sizes", "16", "--families", "survey,tied,one-hot", "--repeats", "1"]
    monkeypatch.setattr(sys, "argv", ["matching", *words])
    matching.main()
    out = capsys.readouterr().out
    assert "disagrees" not in out
    lines = [line.split() for line in out.splitlines() if "/" in line.split(" ")[0]]
    differences = {words[0]: float(words[-1]) for words in lines if words[-1] != "GB"}
    cases = {"survey/cold/NetworkX", "tied/warm/own-cold", "one-hot/cold/certificate"}
    assert cases <= set(differences)
    bounds = {name: gap for name, gap in differences.items() if "SciPy-bound" in name}
    assert min(bounds.values()) >= -matching.AGREEMENT
    exact = set(differences) - set(bounds)
    assert max(differences[name] for name in exact) <= matching.AGREEMENT


def test_a_peer_that_disagrees_is_reported_and_not_timed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scores = matching.make_scores("uniform", 4)
    partner = np.array([1, 0, 3, 2])
    weight = scores[0, 1] + scores[2, 3]
    matching.compare("case", scores, 1.0, (partner, 2.0), weight)
    assert capsys.readouterr().out.startswith("case 4 1.0000 2.0000 2.0 ")
    matching.compare("case", scores, 1.0, (partner, 2.0), weight + 0.1)
    assert "disagrees" in capsys.readouterr().out


def test_peers_stand_in_one_table_that_is_kept_with_the_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = matching.compare_peers(["survey"], [16], 1)
    kept = json.loads(table.finish(tmp_path).read_text(encoding="utf-8"))
    solvers = {row["solver"]: row for row in kept["rows"]}
    assert solvers["NetworkX"]["remark"] == ""
    assert solvers["NetworkX"]["ratio"] > 0.0
    assert solvers["SciPy"]["remark"] == "bound only"
    assert kept["versions"]["networkx"]
    assert kept["machine"]
    assert "NetworkX |" in capsys.readouterr().out


@pytest.mark.parametrize(
    "table",
    [
        lambda: grid_oracle.compare_peers([6], 1),
        lambda: tree_reweighted.compare_peers([8]),
        lambda: map_estimates.compare_peers({"glass": map_estimates.spin_glass(3, 2, 0)}, 5.0),
    ],
    ids=["grid oracle", "tree-reweighted", "map estimates"],
)
def test_no_peer_of_an_oracle_disagrees(table: Callable[[], PeerTable]) -> None:
    rows = table().rows
    assert rows  # ours at least: which peers are installed is the machine's
    assert not [row for row in rows if row.remark == "disagrees"]


def test_the_time_of_a_peer_that_disagrees_is_not_compared() -> None:
    table = PeerTable("matching", ())
    table.put_ours("case", 4, 1.0, 10.0)
    table.put("case", 4, "other", 0.5, 10.1)
    assert (table.rows[-1].ratio, table.rows[-1].remark) == (None, "disagrees")


@pytest.mark.parametrize("shape", SHAPES)
def test_rooms_of_every_shape_agree_with_every_peer(shape: str) -> None:
    size = 12 if shape == "eights" else 18  # of 18, the whole model takes HiGHS minutes
    (table,) = rooms.compare(SHAPES[shape](size), 60.0, 1e-6)
    best = table.weights["ours"]
    assert table.weights["HiGHS, whole model"] == pytest.approx(best, abs=1e-4)
    for method, weight in table.weights.items():
        assert weight <= best + 1e-4, method
        assert table.bounds[method] >= best - 1e-4, method
    assert {"exchange alone", "HiGHS, whole model", "CP-SAT, whole model"} <= set(table.weights)


def test_a_bound_below_a_placement_stops_the_benchmark_of_rooms() -> None:
    table = rooms.Table("made up")
    table.put("one", 1.0, 3.0, 0.0)
    with pytest.raises(SystemExit, match="above 2"):
        table.put("other", 2.5, 2.0, 0.0)
