"""Learning to segment: solvers agree, certificates hold, work resumes, bad input is refused."""

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.status import Status
from engine.datasets.synthetic_images import generate_leaf_images
from engine.learning.marginal_fitting import fit_marginals
from engine.learning.segmentation import make_examples, train_segmentation
from engine.learning.segmentation_model import (
    N_PARAMETERS,
    load_segmentation_model,
    make_segmentation_model,
)
from engine.learning.segmentation_prediction import (
    best_labelling,
    evaluate_mask,
    predict_segmentation,
)
from engine.learning.segmentation_progress import SegmentationProgress
from engine.learning.segmentation_solvers import subset_sizes
from engine.objectives.grid_inner import GridChains, GridSetInnerProblem
from engine.objectives.grid_losses import LossOptions
from tests.reference.tiny_grids import all_statistics, tiny_example


def leaves(count: int, seed: int = 0, shape: tuple[int, int] = (48, 64)):
    pictures = generate_leaf_images(count, rng=np.random.default_rng(seed), shape=shape)
    return [p.image for p in pictures], [p.mask for p in pictures]


@pytest.fixture(scope="module")
def trained():
    return train_segmentation(*leaves(5), relative_gap=1e-4)


def test_it_learns_to_tell_leaves_from_soil(trained: Any) -> None:
    images, masks = leaves(3, seed=9)
    for image, mask in zip(images, masks, strict=True):
        errors = evaluate_mask(predict_segmentation(trained.model, image), mask)
        assert errors.error_map < 0.1
        assert errors.error_mpm < 0.1
        assert errors.iou > 0.6
        assert errors.log_loss < 0.3


def test_the_certificate_brackets_the_optimum(trained: Any) -> None:
    """The parameters' own log-likelihood lies between the two bounds."""
    assert trained.result.status is Status.CONVERGED
    assert trained.result.relative_gap <= 1e-4
    assert trained.result.duality_gap == trained.result.objective - trained.result.lower_bound
    total = -0.5 * trained.model.ridge * trained.model.theta @ trained.model.theta
    for example in make_examples(*leaves(5), 200):
        chains = GridChains(example.features, 0.5, trained.model.theta)
        chains.sweep(200)
        observed = example.features.observed_statistics(example.labels)
        total += trained.model.theta @ observed - chains.upper_bound()
    slack = 1e-6 * abs(total)
    assert trained.result.lower_bound - slack <= total <= trained.result.objective + slack


@pytest.mark.parametrize("solver", ["frank-wolfe", "block-coordinate"])
def test_frank_wolfe_walks_to_the_same_optimum(solver: str) -> None:
    """A heavy ridge brings the optimum into the interior, where Frank-Wolfe is quick enough."""
    images, masks = leaves(3, shape=(16, 20))
    reference = train_segmentation(images, masks, ridge=3e4, relative_gap=1e-6)
    walked = train_segmentation(
        images, masks, ridge=3e4, solver=solver, relative_gap=0.02, max_seconds=60
    )
    assert walked.result.status is Status.CONVERGED
    assert walked.result.relative_gap <= 0.02
    assert walked.result.objective >= reference.result.lower_bound
    assert walked.result.lower_bound <= reference.result.objective
    assert all(b.objective <= a.objective for a, b in pairwise(walked.result.trajectory))
    distance = np.linalg.norm(walked.model.theta - reference.model.theta)
    assert distance < 0.2 * np.linalg.norm(reference.model.theta)


def test_frank_wolfe_ends_at_once_when_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The closer bounds cost a solve of every picture: not for somebody who asked to stop."""
    images, masks = leaves(3, shape=(16, 20))
    reports: list[Any] = []
    options: dict[str, Any] = {"ridge": 3e4, "solver": "frank-wolfe", "relative_gap": 1e-9}
    solved: list[int] = []
    solve = GridSetInnerProblem.solve

    def counted(problem: Any, *words: Any) -> Any:
        solved.append(1)
        return solve(problem, *words)

    monkeypatch.setattr(GridSetInnerProblem, "solve", counted)
    stopped = train_segmentation(
        images,
        masks,
        on_progress=reports.append,
        should_stop=lambda: len(reports) == 3,
        **options,
    )
    assert stopped.result.status is Status.CANCELLED
    assert not solved
    limited = train_segmentation(images, masks, max_seconds=0.05, **options)
    assert limited.result.status is Status.TIME_LIMIT
    assert solved


def test_a_stop_while_frank_wolfe_seeks_closer_bounds_leaves_it_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stopped(problem: Any, *words: Any) -> Any:
        raise StoppedError("Learning was stopped.")

    images, masks = leaves(3, shape=(16, 20))
    options: dict[str, Any] = {"ridge": 3e4, "solver": "frank-wolfe", "relative_gap": 0.05}
    monkeypatch.setattr(GridSetInnerProblem, "solve", stopped)
    result = train_segmentation(images, masks, **options).result
    assert result.status is Status.CONVERGED
    assert 0.0 < result.relative_gap <= 0.05


def test_the_seconds_of_frank_wolfe_include_those_of_its_closer_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solve = GridSetInnerProblem.solve

    def slow(problem: Any, *words: Any) -> Any:
        time.sleep(0.3)
        return solve(problem, *words)

    images, masks = leaves(3, shape=(16, 20))
    options: dict[str, Any] = {"ridge": 3e4, "solver": "frank-wolfe", "relative_gap": 0.05}
    monkeypatch.setattr(GridSetInnerProblem, "solve", slow)
    result = train_segmentation(images, masks, **options).result
    assert result.seconds >= result.trajectory[-1].seconds + 0.3


def test_likelihood_by_l_bfgs_finds_the_same_parameters() -> None:
    """The competitor's converged surrogate likelihood is the same convex problem."""
    images, masks = leaves(2, shape=(16, 20))
    ours = train_segmentation(images, masks, ridge=30.0, relative_gap=1e-7)
    options = LossOptions("surrogate-likelihood", threshold=1e-9)
    theirs = fit_marginals(
        make_examples(images, masks, 200), options, ridge=ours.model.ridge, max_iterations=400
    )
    assert theirs.objective == pytest.approx(-ours.result.lower_bound, rel=1e-4)
    assert_allclose(theirs.theta, ours.model.theta, atol=0.02 * np.abs(ours.model.theta).max())


class Killed(Exception):
    pass


def killed(count: int, place: FileCheckpoint, steps: int, **options: Any) -> list[Any]:
    """Learn from ``count`` leaves until after ``steps`` reports; return these."""
    reports: list[SegmentationProgress] = []

    def kill(progress: Any) -> None:
        reports.append(progress)
        if len(reports) == steps:
            raise Killed

    with pytest.raises(Killed):
        train_segmentation(*leaves(count), on_progress=kill, checkpoint=place, **options)
    return reports


@pytest.mark.parametrize("steps", [5, 16])
def test_a_killed_job_goes_on_and_gives_the_same_answer(
    steps: int, tmp_path: Path, trained: Any
) -> None:
    """It used to forget its bounds, its points and its metric, and to climb anew."""
    place = FileCheckpoint(tmp_path / "state.npz")
    killed(5, place, steps, relative_gap=1e-4)
    saved = place.load()
    assert saved is not None
    upper, lower = saved["run_bounds"]
    reports: list[Any] = []
    resumed = train_segmentation(
        *leaves(5), relative_gap=1e-4, checkpoint=place, on_progress=reports.append
    ).result
    assert reports[0].objective <= upper
    assert reports[0].lower_bound >= lower
    assert reports[0].iteration == saved["iteration"]
    assert resumed.iterations <= trained.result.iterations + 3
    assert resumed.oracle_calls <= 1.5 * trained.result.oracle_calls
    assert resumed.relative_gap <= 1e-4
    assert resumed.lower_bound == pytest.approx(trained.result.lower_bound, rel=2e-4)
    assert resumed.objective == pytest.approx(trained.result.objective, rel=2e-4)
    scale = np.abs(trained.model.theta).max()
    assert_allclose(resumed.theta, trained.model.theta, atol=0.05 * scale)


@pytest.mark.parametrize("is_rehearsal", [True, False])
def test_a_job_killed_among_growing_subsets_loses_neither_steps_nor_time(
    is_rehearsal: bool, tmp_path: Path
) -> None:
    """What the rehearsal learned of the curvature is gone on from too."""
    whole: list[Any] = []
    unbroken = train_segmentation(*leaves(14), on_progress=whole.append).result
    rehearsed = sum(report.objective is None for report in whole)
    steps = rehearsed - 3 if is_rehearsal else rehearsed + 3
    place = FileCheckpoint(tmp_path / "state.npz")
    before = killed(14, place, steps)
    assert (before[-1].objective is None) == is_rehearsal
    after: list[Any] = []
    resumed = train_segmentation(*leaves(14), checkpoint=place, on_progress=after.append).result
    assert len(before) + len(after) <= len(whole) + 5
    assert 0.9 <= resumed.oracle_calls / unbroken.oracle_calls <= 1.5
    assert after[0].seconds >= before[-2].seconds
    assert resumed.seconds >= after[-1].seconds >= after[0].seconds


def test_seconds_before_a_kill_count_towards_the_limit(tmp_path: Path) -> None:
    place = FileCheckpoint(tmp_path / "state.npz")
    killed(14, place, 12)
    state = place.load()
    assert state is not None
    place.save(state | {"seconds_before": np.array(50.0)})
    after: list[Any] = []
    resumed = train_segmentation(
        *leaves(14), max_seconds=50.0, checkpoint=place, on_progress=after.append
    ).result
    assert resumed.status is Status.TIME_LIMIT
    assert resumed.seconds >= 50.0
    assert after[0].seconds >= 50.0


@pytest.fixture(autouse=True)
def save_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)


def test_reports_carry_the_error_and_the_marginals_of_held_out_pictures() -> None:
    reports: list[Any] = []
    train_segmentation(*leaves(14), holdout=leaves(3, seed=4), on_progress=reports.append)
    previews = [report.preview for report in reports]
    assert all(preview is not None and len(preview.marginals) == 2 for preview in previews)
    assert previews[-1].marginals[0].shape == (48, 64)
    assert previews[-1].error < 0.1 < previews[0].error
    rehearsals = [report for report in reports if report.sentence.startswith("Rehearsing")]
    assert rehearsals
    assert all(report.objective is None and report.fraction is None for report in rehearsals)
    iterations = [report.iteration for report in reports]
    assert iterations == sorted(iterations)
    bounds = [report for report in reports if report.objective is not None]
    assert bounds[-1].objective >= bounds[-1].lower_bound
    assert bounds[-1].relative_gap <= 1e-3
    seconds = [report.seconds for report in reports]
    assert seconds == sorted(seconds)


def test_a_stop_is_heard() -> None:
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls > 30

    try:
        result = train_segmentation(*leaves(3), relative_gap=1e-12, should_stop=stop)
    except StoppedError:
        return
    assert result.result.status is Status.CANCELLED


def test_a_stop_in_a_rehearsal_never_passes_for_a_result() -> None:
    """The bounds of a subset are not those of the whole problem."""
    reports: list[Any] = []

    def stop() -> bool:
        return len(reports) >= 3

    with pytest.raises(StoppedError):
        train_segmentation(*leaves(14), on_progress=reports.append, should_stop=stop)
    assert all(report.objective is None for report in reports)


def test_a_time_limit_is_no_convergence() -> None:
    result = train_segmentation(*leaves(3), relative_gap=1e-12, max_seconds=0.3)
    assert result.result.status is Status.TIME_LIMIT
    assert result.result.objective >= result.result.lower_bound


def test_one_picture_is_enough_and_tiny_ones_do_no_harm() -> None:
    images, masks = leaves(1, shape=(30, 30))
    dots = [np.zeros((1, 1, 3), np.uint8), np.zeros((1, 40, 3), np.uint8)]
    more = [np.ones((1, 1), bool), np.zeros((1, 40), bool)]
    result = train_segmentation(images + dots, masks + more)
    assert result.result.relative_gap <= 1e-3
    for dot in dots:
        assert predict_segmentation(result.model, dot).mask.shape == dot.shape[:2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"masks": []}, "image 1 has no mask"),
        ({"images": leaves(2)[0]}, "mask 3 has no image"),
        ({"images": [], "masks": []}, "no labelled images"),
        ({"masks": [np.zeros((48, 64), bool)] * 5}, "No mask marks any pixel"),
        ({"masks": [np.ones((48, 64), bool)] * 5}, "mark every pixel"),
        ({"masks": [np.zeros((9, 9), bool)] * 5}, "image 1: expected a mask"),
        ({"ridge": 0.0}, "ridge"),
        ({"ridge": float("nan")}, "ridge"),
        ({"relative_gap": 0.0}, "relative_gap"),
        ({"relative_gap": -1.0}, "relative_gap"),
        ({"relative_gap": float("nan")}, "relative_gap"),
        ({"max_seconds": 0.0}, "max_seconds"),
        ({"max_seconds": float("nan")}, "max_seconds"),
        ({"rho": 0.7}, "rho"),
        ({"max_side": 4}, "max_side"),
        ({"solver": "magic"}, "solver"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], words: str) -> None:
    images, masks = leaves(5)
    arguments: dict[str, Any] = {"images": images, "masks": masks} | change
    with pytest.raises(InvalidProblemError, match=words):
        train_segmentation(**arguments)


def test_growing_subsets_end_with_everything() -> None:
    assert subset_sizes(1) == (1,)
    assert subset_sizes(12) == (12,)
    assert subset_sizes(200) == (6, 19, 62, 200)


def test_prediction_has_the_size_of_the_picture(trained: Any) -> None:
    images, masks = leaves(1, seed=3, shape=(300, 410))
    prediction = predict_segmentation(trained.model, images[0])
    assert prediction.mask.shape == prediction.marginals.shape == masks[0].shape
    assert prediction.grid_shape == (146, 200)
    assert prediction.marginals.dtype == np.float32
    assert 0.0 <= prediction.marginals.min() <= prediction.marginals.max() <= 1.0
    assert prediction.entropy.max() <= np.log(2) + 1e-6
    assert prediction.upper_bound >= prediction.score
    with pytest.raises(ValueError, match="read-only"):
        prediction.mask[0, 0] = True
    with pytest.raises(InvalidProblemError, match="bytes of shape"):
        predict_segmentation(trained.model, images[0][:, :, 0])


def test_best_labelling_against_enumeration() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        example = tiny_example(rng)
        theta = 1.5 * rng.normal(size=14)
        best = (all_statistics(example.features) @ theta).max()
        labels, score, bound = best_labelling(example.features, theta)
        own = theta @ example.features.observed_statistics(labels)
        assert score == pytest.approx(own, abs=1e-9)
        assert score <= best + 1e-9 <= bound + 2e-9
        if bound - score < 1e-9:
            assert score == pytest.approx(best, abs=1e-9)


def test_a_model_survives_its_file(tmp_path: Path, trained: Any) -> None:
    trained.model.save(tmp_path / "model.npz")
    loaded = load_segmentation_model(tmp_path / "model.npz")
    assert_allclose(loaded.theta, trained.model.theta, rtol=0)
    assert (loaded.ridge, loaded.rho, loaded.max_side) == (
        trained.model.ridge,
        trained.model.rho,
        trained.model.max_side,
    )


def spoil(path: Path, **changes: Any) -> Path:
    with np.load(path) as archive:
        parts = {name: archive[name] for name in archive.files}
    for name, value in changes.items():
        if value is None:
            del parts[name]
        else:
            parts[name] = np.asarray(value)
    np.savez(path, **parts)
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"theta": np.full(N_PARAMETERS, np.nan)}, "damaged: theta"),
        ({"theta": np.zeros(12)}, "other image features"),
        ({"colour_thresholds": np.zeros(10)}, "other image features"),
        ({"format": "bethe-hall roommate model 1"}, "not a segmentation model"),
        ({"rho": None}, "not a segmentation model"),
        ({"ridge": -1.0}, "damaged: ridge"),
        ({"max_side": 0}, "damaged: max_side"),
        ({"max_side": np.nan}, "damaged: max_side is not a finite number"),
        ({"theta": np.full(N_PARAMETERS, 1j)}, "damaged: theta is not a finite number"),
        ({"theta": np.full(N_PARAMETERS, "a")}, "damaged: theta is not a finite number"),
        ({"ridge": [1.0, 2.0]}, "damaged: ridge is not one number"),
    ],
)
def test_a_bad_model_file_is_refused(tmp_path: Path, changes: Any, words: str) -> None:
    model = make_segmentation_model(np.zeros(N_PARAMETERS), ridge=1.0, rho=0.5, max_side=200)
    model.save(tmp_path / "m.npz")
    with pytest.raises(InvalidProblemError, match=words):
        load_segmentation_model(spoil(tmp_path / "m.npz", **changes))


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    with pytest.raises(InvalidProblemError, match="no such file"):
        load_segmentation_model(path)
    path.write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(InvalidProblemError, match="not a model file"):
        load_segmentation_model(path)
    np.save(tmp_path / "array.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidProblemError, match="not a"):
        load_segmentation_model(tmp_path / "array.npy")


@pytest.mark.parametrize("solver", ["frank-wolfe", "block-coordinate"])
def test_frank_wolfe_resumes_where_it_was_killed(solver: str, tmp_path: Path) -> None:
    """Saved states hold points and random state: the walk is the same step by step."""
    images, masks = leaves(3, shape=(16, 20))
    options: dict[str, Any] = {"ridge": 3e4, "solver": solver, "relative_gap": 0.02}
    whole = train_segmentation(images, masks, rng=np.random.default_rng(5), **options)
    checkpoint = FileCheckpoint(tmp_path / "state.npz")

    class Killed(Exception):
        pass

    def kill(progress: Any) -> None:
        if progress.iteration >= whole.result.iterations // 2:
            raise Killed

    with pytest.raises(Killed):
        train_segmentation(
            images,
            masks,
            rng=np.random.default_rng(5),
            on_progress=kill,
            checkpoint=checkpoint,
            **options,
        )
    state = checkpoint.load()
    assert state is not None
    assert 0 < int(state["iteration"]) < whole.result.iterations
    resumed = train_segmentation(
        images, masks, rng=np.random.default_rng(6), checkpoint=checkpoint, **options
    )
    assert resumed.result.iterations == whole.result.iterations
    assert_allclose(resumed.model.theta, whole.model.theta, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "count", "named"),
    [
        ({"solver": "frank-wolfe"}, 3, "solver theta, not frank-wolfe"),
        ({"solver": "block-coordinate"}, 3, "solver theta, not block-coordinate"),
        ({"ridge": 2e4}, 3, "ridge 30000.0, not 20000.0"),
        ({"rho": 0.4}, 3, "rho 0.5, not 0.4"),
        ({}, 2, "images 3, not 2"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused_and_kept(
    change: dict[str, float], count: int, named: str, tmp_path: Path
) -> None:
    place = FileCheckpoint(tmp_path / "state.npz")
    options: dict[str, Any] = {"ridge": 3e4, "rho": 0.5, "relative_gap": 0.02, "checkpoint": place}
    train_segmentation(*leaves(3, shape=(16, 20)), **options)
    before = (tmp_path / "state.npz").read_bytes()
    with pytest.raises(InvalidProblemError, match=named):
        train_segmentation(*leaves(count, shape=(16, 20)), **(options | change))
    assert (tmp_path / "state.npz").read_bytes() == before


def test_a_checkpoint_of_other_pictures_of_the_same_size_is_refused_and_kept(
    tmp_path: Path,
) -> None:
    """Half of it was used and the rest overwritten, as if the pictures were the same."""
    place = FileCheckpoint(tmp_path / "state.npz")
    images, masks = leaves(3, shape=(16, 20))
    options: dict[str, Any] = {"relative_gap": 0.02, "checkpoint": place}
    train_segmentation(images, masks, **options)
    before = (tmp_path / "state.npz").read_bytes()
    other = [*masks[:2], np.roll(masks[2], 1, axis=0)]
    for pictures, labels in ((leaves(3, 7, (16, 20))[0], masks), (images, other)):
        with pytest.raises(InvalidProblemError, match="work with image digest"):
            train_segmentation(pictures, labels, **options)
        assert (tmp_path / "state.npz").read_bytes() == before
    assert train_segmentation(images, masks, solver="theta", **options).result.iterations > 0


def test_a_model_is_not_taken_for_a_checkpoint(tmp_path: Path) -> None:
    place = FileCheckpoint(tmp_path / "model.npz")
    place.save({"theta": np.zeros(3)})
    with pytest.raises(InvalidProblemError, match="not of work that has a solver"):
        train_segmentation(*leaves(2, shape=(16, 20)), checkpoint=place)
    saved = place.load()
    assert saved is not None
    assert set(saved) == {"theta"}
