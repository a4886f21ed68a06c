"""A killed job goes on where it was, and no other work's checkpoint is touched."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.learning.segmentation.mask_learning import train_segmentation
from engine.learning.segmentation.mask_progress import SegmentationProgress
from tests.learning.segmentation.leaf_pictures import leaves


class Killed(Exception):
    pass


@pytest.fixture(autouse=True)
def save_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)


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
    """It used to forget its bounds, its points and its metric, and to start again."""
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
    place.save(dict(state) | {"seconds_before": np.array(50.0)})
    after: list[Any] = []
    resumed = train_segmentation(
        *leaves(14), max_seconds=50.0, checkpoint=place, on_progress=after.append
    ).result
    assert resumed.status is Status.TIME_LIMIT
    assert resumed.seconds >= 50.0
    assert after[0].seconds >= 50.0


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


@pytest.mark.parametrize("threads", [3, 4])
def test_blocks_are_resumed_on_a_machine_with_more_cores(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block held as many pictures as there were threads: 3, then 2, now 4 and 1."""
    images, masks = leaves(5, shape=(16, 20))
    options: dict[str, Any] = {"ridge": 3e4, "solver": "block-coordinate", "relative_gap": 0.02}
    monkeypatch.setattr("engine.learning.segmentation.mask_solvers.THREADS", 3)
    whole = train_segmentation(images, masks, **options).result
    place, reports = FileCheckpoint(tmp_path / "state.npz"), 0

    def kill(progress: Any) -> None:
        nonlocal reports
        reports += 1
        if reports == 3:
            raise Killed

    with pytest.raises(Killed):
        train_segmentation(images, masks, on_progress=kill, checkpoint=place, **options)
    monkeypatch.setattr("engine.learning.segmentation.mask_solvers.THREADS", threads)
    resumed = train_segmentation(images, masks, checkpoint=place, **options).result
    assert resumed.iterations == whole.iterations
    assert_allclose(resumed.theta, whole.theta, rtol=1e-9, atol=1e-12)


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
