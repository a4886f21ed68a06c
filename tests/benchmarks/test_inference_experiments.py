"""The quick form of the experiments on inference runs, and shows what the long form measures."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.common import reporting
from benchmarks.common.kept_results import KeptResults
from benchmarks.goals import exact_structures, margin_labels
from benchmarks.papers.domke2013 import (
    backgrounds,
    chains,
    fitting_thresholds,
    gradients,
    perturbation_steps,
)
from benchmarks.papers.domke2013_logistic import learning
from benchmarks.papers.meshi2012 import dual_coordinates, rates


def test_learning_is_exact_where_trees_of_cliques_are() -> None:
    rng = np.random.default_rng(0)
    for name, outcome in exact_structures.run(8, 2, rng).items():
        assert outcome.lower - 1e-6 <= outcome.exact <= outcome.upper + 1e-6
        assert outcome.upper - outcome.lower < 1e-6
        assert outcome.distance < 1e-3
        assert outcome.frank_wolfe[0] <= outcome.exact <= outcome.frank_wolfe[1] + 1e-6
        if name in {"chain", "tree"}:  # no cycle: the Bethe entropy is the exact one
            assert abs(outcome.losses[1.0]) < 0.01
            assert outcome.losses[0.5] > 0.01


def test_max_margin_learns_grids_of_several_labels() -> None:
    fits = margin_labels.run(5, 3, 3, 3, np.random.default_rng(0))
    assert fits["support vectors, ridge 0.01"].gap is not None
    assert fits["support vectors, ridge 0.01"].gap < 0.05
    assert fits["support vectors, ridge 0.01"].train < fits["the label shown"].train


def test_every_schedule_closes_the_gap_from_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "RESULTS", tmp_path)
    model = rates.random_model(np.random.default_rng(0))
    curves = rates.run(model, 5.0, 2.0, looks=14)
    best = min(curve.dual.min() for curve in curves.values())
    for name, curve in curves.items():
        assert (curve.primal <= curve.dual + 1e-9).all(), name
        assert (curve.primal <= best + 1e-9).all(), name
        if name not in {"asynchronous", "FISTA"}:  # all others descend
            assert (np.diff(curve.dual) <= 1e-9).all(), name
        if name != "gradient":
            assert curve.dual[-1] - curve.primal[-1] < 0.5, name
    assert (tmp_path / "meshi_figure_1a.png").exists()


def test_every_method_is_followed_to_the_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "RESULTS", tmp_path)
    found = dual_coordinates.compare_methods(dual_coordinates.generated(), 5.0, 0.1, 0.5)
    for descents in found.values():
        assert descents["greedy"].gaps[-1] <= 0.1
        for one in descents.values():
            assert min(one.gaps) > -1e-9
            assert one.gaps[0] > one.gaps[-1]
    assert (tmp_path / "meshi_figure_1b.png").exists()


def test_gradients_agree_but_for_truncation() -> None:
    timings = gradients.run([6], np.random.default_rng(0))[6]
    assert timings["implicit"].error < 1e-6
    assert timings["perturbation, sides: 2"].error < 1e-4
    assert timings["perturbation, sides: 4"].error < 1e-4
    assert timings["back-propagation to 1e-5"].error < 1e-2
    errors = [timings[f"truncated, {n} iterations"].error for n in (5, 10, 40)]
    assert errors[0] > errors[1] > errors[2]


def test_a_wrong_step_spoils_perturbed_gradients_and_more_sides_allow_longer_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "RESULTS", tmp_path)
    multipliers = np.array([1e-4, 1.0, 1e2, 1e4])
    found = perturbation_steps.run(4, 2, np.random.default_rng(0), (1.0,), multipliers)
    for inference in ("TRW", "mean field"):
        one, two, four = found[inference, 1.0]
        assert max(one[1], two[1], four[1]) < 1e-4
        assert all(errors[0] > 3.0 * errors[1] for errors in (two, four))  # rounding
        assert all(errors[3] > 30.0 * errors[1] for errors in (one, two, four))  # approximation
        assert one[2] > 30.0 * two[2] > 30.0 * four[2]
    assert (tmp_path / "domke_figure_3.png").exists()


def test_perturbation_fails_where_inference_stops_early_and_truncation_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "RESULTS", tmp_path)
    rng = np.random.default_rng(0)
    pairs = backgrounds.generated(2, rng)
    scenes = [backgrounds.make_scene(pair, 3, 50).example for pair in pairs]
    costs, descents = fitting_thresholds.run(scenes, 0.5, (5, 40), (1e-1, 1e-4))
    assert costs["truncated, 40 sweeps"].error < 1e-3 < costs["truncated, 5 sweeps"].error
    assert costs["back-propagation to 0.0001"].error < costs["back-propagation to 0.1"].error
    assert costs["perturbation to 1e-09"].error < 1e-3
    assert costs["perturbation to 0.1"].error > 1.0
    losses = {name: descent.loss for name, descent in descents.items()}
    assert losses["truncated, 5 sweeps"][-1] < losses["truncated, 5 sweeps"][0]
    assert losses["truncated, 5 sweeps"][-1] < losses["perturbation to 0.1"][-1]
    assert (tmp_path / "domke_figure_7.png").exists()


def test_marginal_losses_withstand_what_the_likelihood_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "RESULTS", tmp_path)
    mean = chains.run(2, 6, (300,), (0, 2), KeptResults(tmp_path, {}))
    well, wrong = mean[:, 0]
    assert max(well) - min(well) < 0.02  # well specified: all alike
    assert min(wrong) > max(well)
    likelihood, univariate = wrong[:2]
    assert univariate <= likelihood + 0.005
    assert (tmp_path / "domke_figures_1_and_2.png").exists()


def test_chains_are_summed_exactly_and_differentiated() -> None:
    rng = np.random.default_rng(0)
    x, y = chains.draw(chains.draw_truth(4, rng), 5, rng)
    model = chains.ChainModel(x, y)
    theta = rng.normal(size=28)
    for name in chains.LOSSES:
        _, gradient = model.loss(theta, name)
        for k in range(0, 28, 5):
            way = 1e-5 * np.eye(28)[k]
            slope = (model.loss(theta + way, name)[0] - model.loss(theta - way, name)[0]) / 2e-5
            assert gradient[k] == pytest.approx(slope, abs=1e-4)


def test_structured_logistic_learning_descends_and_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "RESULTS", tmp_path)
    rng = np.random.default_rng(0)
    pictures = [learning.denoising(16, rng) for _ in range(4)]
    names = ("zero", "MLP")
    kept = KeptResults(tmp_path, {})
    cells = learning.run("denoising", pictures[:2], pictures[2:], 6, names, kept)
    for cell, learned in cells.items():
        changes = np.diff(learned.objective)
        assert (changes <= 1e-3 * abs(learned.objective[0])).all(), cell
    assert cells["MLP", "MLP"].test[-1] < cells["MLP", "zero"].test[-1] - 0.1
    trees = learning.learn(pictures[:2], pictures[2:], ("boosting", "boosting"), 2)
    assert (np.diff(trees.objective) < 0.0).all()
    assert cells["zero", "zero"].test[-1] > 0.3
    curve = cells["MLP", "MLP"].unary  # the brighter, the likelier 1
    assert curve[-1, 1] - curve[-1, 0] > curve[0, 1] - curve[0, 0]
    chosen = [("MLP", "zero")]  # kept: the other cells are not looked at
    again = learning.run("denoising", pictures[:2], pictures[2:], 6, names, kept, chosen)
    assert list(again) == chosen
    assert again["MLP", "zero"].test.tolist() == cells["MLP", "zero"].test.tolist()
    for figure in ("1", "2_denoising", "3_denoising"):
        assert (tmp_path / f"domke_logistic_figure_{figure}.png").exists()


def test_scenes_of_several_classes_are_learned_by_every_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "RESULTS", tmp_path)
    words = ["--quick", "--out", str(tmp_path / "kept")]
    errors = {row["loss"]: row["test"] for row in backgrounds.main(words)}
    assert len(errors) == 6
    assert all(error < 0.1 for loss, error in errors.items() if loss != "pseudolikelihood")
    assert backgrounds.main(words)[0]["test"] == errors["independent"]  # kept, not made again
    assert (tmp_path / "domke_figure_6.png").exists()
