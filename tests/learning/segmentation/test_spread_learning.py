"""Learning spread over hosts: the answer of one host, and nothing lost with a host."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.hosts import HostLostError
from engine.core.progress import Progress
from engine.learning.segmentation import spread_pictures
from engine.learning.segmentation.dask_hosts import DaskHosts
from engine.learning.segmentation.mask_learning import TrainedSegmentation, train_segmentation
from tests.learning.segmentation.leaf_pictures import leaves
from tests.learning.segmentation.told_pictures import told_leaves
from tests.patience import busyness

GAP = 1e-3
COUNT = 15  # a rehearsal on five, then all


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes on this machine, spoken to over TCP."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        host="127.0.0.1",
        silence_logs=50,
    ) as running:
        yield running


@pytest.fixture(scope="module")
def alone() -> TrainedSegmentation:
    return train_segmentation(*leaves(COUNT), relative_gap=GAP)


def test_the_answer_is_that_of_one_host(
    cluster: Any, alone: TrainedSegmentation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(spread_pictures, "SENT_PIXELS", 5_000)  # several sendings
    place = FileCheckpoint(tmp_path / "state.npz")
    with DaskHosts(cluster.scheduler_address) as hosts:
        assert hosts.count == 2
        spread = train_segmentation(*leaves(COUNT), relative_gap=GAP, hosts=hosts, checkpoint=place)
    one, two = alone.result, spread.result
    scale = np.abs(one.theta).max()
    assert_allclose(two.theta, one.theta, rtol=0, atol=1e-9 * scale)
    assert two.objective == pytest.approx(one.objective, rel=1e-9)
    assert two.lower_bound == pytest.approx(one.lower_bound, rel=1e-9)
    assert (two.iterations, two.oracle_calls) == (one.iterations, one.oracle_calls)
    assert two.is_certified
    # The pictures are the same ones: what was saved on several hosts is gone on with on one.
    resumed = train_segmentation(*leaves(COUNT), relative_gap=GAP, checkpoint=place)
    assert resumed.result.iterations >= two.iterations
    assert resumed.result.relative_gap <= GAP


def test_maps_of_another_program_go_to_the_hosts(cluster: Any) -> None:
    images, masks, maps = told_leaves(6)
    options: dict[str, Any] = {"maps": maps, "relative_gap": 1e-2}
    alone = train_segmentation(images, masks, **options)
    with DaskHosts(cluster.scheduler_address) as hosts:
        spread = train_segmentation(images, masks, hosts=hosts, **options)
    assert spread.model.n_maps == 1
    scale = np.abs(alone.result.theta).max()
    assert_allclose(spread.result.theta, alone.result.theta, rtol=0, atol=1e-9 * scale)


def test_a_host_that_dies_is_said_and_learning_goes_on_without_it(
    cluster: Any, alone: TrainedSegmentation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    place = FileCheckpoint(tmp_path / "state.npz")
    steps: list[int] = []
    killed: list[float] = []
    workers = DaskHosts._workers

    def kill(progress: Progress) -> None:
        steps.append(progress.iteration)
        if len(steps) == 8:
            victim = next(iter(cluster.workers.values()))
            victim.process.process._process.kill()
            killed.append(time.monotonic())

    def noticed_late(hosts: DaskHosts) -> set[str]:
        """As of a scheduler that is busy: its actors tell of a dead worker first."""
        if killed and time.monotonic() - killed[0] < 1.5:
            return set(hosts._addresses)
        return workers(hosts)

    monkeypatch.setattr(DaskHosts, "_workers", noticed_late)
    with DaskHosts(cluster.scheduler_address) as hosts, pytest.raises(HostLostError):
        train_segmentation(
            *leaves(COUNT), relative_gap=GAP, hosts=hosts, checkpoint=place, on_progress=kill
        )
    assert place.load() is not None
    with DaskHosts(cluster.scheduler_address) as hosts:  # those that are there now
        went_on: list[int] = []
        spread = train_segmentation(
            *leaves(COUNT),
            relative_gap=GAP,
            hosts=hosts,
            checkpoint=place,
            on_progress=lambda progress: went_on.append(progress.iteration),
        )
    assert spread.result.relative_gap <= GAP
    assert spread.result.lower_bound == pytest.approx(alone.result.lower_bound, rel=2 * GAP)


def test_stopping_reaches_the_hosts(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_at: list[float] = []

    def should_stop() -> bool:
        if stopped_at:
            return True
        if time.monotonic() - started > 0.3:
            stopped_at.append(time.monotonic())
        return bool(stopped_at)

    started = time.monotonic()
    with DaskHosts(cluster.scheduler_address) as hosts, pytest.raises(StoppedError):
        train_segmentation(
            *leaves(40, shape=(150, 200)), relative_gap=1e-9, hosts=hosts, should_stop=should_stop
        )
    assert time.monotonic() - stopped_at[0] < 2.0 * busyness()


def test_other_solvers_and_absent_schedulers_are_refused(cluster: Any) -> None:
    with DaskHosts(cluster.scheduler_address) as hosts:
        for options in ({"solver": "frank-wolfe"}, {"loss": "univariate"}):
            with pytest.raises(InvalidProblemError, match="hosts: expected solver theta"):
                train_segmentation(*leaves(2), hosts=hosts, **options)
    with pytest.raises(HostLostError, match="does not answer"):
        DaskHosts("tcp://127.0.0.1:1", seconds=0.5)
