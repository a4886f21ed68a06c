"""The quick form of every experiment runs, and shows the effect that the long form measures."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.common import reporting
from benchmarks.papers.tang2015 import double_loop, house, marginals, roommates, sandwich
from tests.shared_data import shared_data


@pytest.fixture(autouse=True)
def plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plots of tests go to a folder of their own."""
    monkeypatch.setattr(reporting, "RESULTS", tmp_path)
    return tmp_path


@pytest.mark.slow
def test_house_learns_to_match_landmarks(plots: Path) -> None:
    data = house.House(shared_data("cmu_house"), max_pairs=3, seconds=1.0)
    ours = house.run(data, quick=True)
    assert ours[0].test_loss == 0.0
    assert ours[50].test_loss <= 0.1
    names = {path.name for path in plots.iterdir()}
    assert names == {"house_figure_2.png", "house_figure_3.png", "house_figure_4.png"}


def test_sandwich_of_likelihoods(plots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = sandwich.run(n=5, sizes=(10, 50), repetitions=1, rng=np.random.default_rng(0))
    for by_size in results.values():
        assert all(result.holds() for result in by_size.values())
    for result in results["high SNR"].values():  # as in Figure 1(a)
        at = {name: result.table[name]["exact"] for name in result.table}
        assert at["exact"] >= at["Bethe"] >= at["reweighted"]
    assert (plots / "sandwich_figures_1_and_8.png").exists()
    titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Figure")]
    assert len(titles) == 8
    assert all("published: as curves only" in title for title in titles)


def test_frank_wolfe_beats_perturb_and_map_by_calls(
    plots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    summary = marginals.figure_10(rng, n=6, calls=(1, 10, 100), graphs=1)
    line_search, _, perturbed = summary["beta 0.25"]
    assert line_search[-1] < 0.2 * perturbed[-1]
    assert (plots / "marginals_figure_10.png").exists()
    assert "Figure 10, published: as curves only" in capsys.readouterr().out


def test_every_accuracy_is_reached_but_by_undamped_messages() -> None:
    rng = np.random.default_rng(2)
    seconds = marginals.table_2(rng, sizes=(10,), graphs=1)
    assert None not in seconds[10, "BP damped"]
    assert None not in seconds[10, "Newton"]
    assert seconds[10, "BP undamped"][-1] is None


def test_roommates_recovers_the_truth_and_beats_the_baseline(plots: Path) -> None:
    outcome = roommates.run(
        (160, 160, 160), 8.0, svm_ridges=(1.0,), seconds=1.0, rng=np.random.default_rng(3)
    )
    auc = {name: ranking.roc.auc for name, ranking in outcome.rankings.items()}
    assert auc["likelihood"] > auc["constant baseline"] + 0.1
    assert auc["likelihood"] > auc["truth"] - 0.08
    assert outcome.rank_correlation > 0.5
    assert len(list(plots.iterdir())) == 3


def test_the_double_loop_fails_where_messages_alternate(plots: Path) -> None:
    trials = double_loop.run(shared_data("cmu_house"), gap=50, ridge=100.0, steps=6, max_pairs=2)
    by_name = {(trial.name, trial.factor): trial for trial in trials}
    assert by_name["undamped, cold", 0.5].first_failure == 0
    damped = by_name["damped, cold", 0.5]
    assert damped.first_failure != 0
    assert damped.likelihoods[-1] > by_name["undamped, cold", 10.0].likelihoods[-1]
    assert (plots / "double_loop.png").exists()
