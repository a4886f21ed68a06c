"""The same input and seed give the same placement, whatever else the machine does."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.room_problems import real_mix
from engine.core.checkpoint import FileCheckpoint
from engine.core.status import Status
from engine.rooms.placement import Placement, place_in_rooms

CASE = real_mix(150)


def place(**options: object) -> Placement:
    given = {"gap": 1e-9, "max_seconds": None, "max_work": 0.8, **options}
    return place_in_rooms(
        CASE.scores,
        CASE.rooms,
        CASE.rules,
        attributes=CASE.attributes,
        **given,  # type: ignore
    )


@pytest.fixture(scope="module")
def uninterrupted() -> Placement:
    return place()


@pytest.fixture(scope="module")
def all_looks() -> int:
    """Number of calls of ``should_stop`` in an uninterrupted run."""
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return False

    place(should_stop=should_stop)
    return asked


def test_a_limit_on_work_ends_at_the_same_placement(uninterrupted: Placement) -> None:
    again = place(rng=np.random.default_rng(0))
    assert again.room.tolist() == uninterrupted.room.tolist()
    assert again.upper_bound == uninterrupted.upper_bound
    assert again.work == uninterrupted.work
    assert again.is_repeatable
    other = place(rng=np.random.default_rng(1), max_work=0.02)
    assert other.is_repeatable


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.95])
def test_an_interrupted_run_ends_where_an_uninterrupted_one_does(
    uninterrupted: Placement, all_looks: int, tmp_path: Path, share: float
) -> None:
    """Placements of the same input were worth 185.52 to 185.77 after interruptions."""
    checkpoint = FileCheckpoint(tmp_path / "rooms.npz")
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > share * all_looks

    first = place(should_stop=should_stop, checkpoint=checkpoint)
    assert first.status is Status.CANCELLED
    assert not first.is_repeatable
    second = place(checkpoint=checkpoint)
    assert second.room.tolist() == uninterrupted.room.tolist()
    assert second.upper_bound == uninterrupted.upper_bound
    assert second.work == uninterrupted.work


def test_more_work_than_a_run_had_goes_on_where_it_stopped(tmp_path: Path) -> None:
    checkpoint = FileCheckpoint(tmp_path / "rooms.npz")
    short = place(max_work=0.1, checkpoint=checkpoint)
    longer = place(max_work=0.7, checkpoint=checkpoint)
    assert longer.room.tolist() == place(max_work=0.7).room.tolist()
    assert longer.weight >= short.weight
    assert len(longer.unplaced) <= len(short.unplaced)
