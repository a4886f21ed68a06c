"""The same input and seed give the same placement, whatever else the machine does."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.room_problems import real_mix
from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.crf.rooms import Rooms
from engine.rooms import placement as placement_module
from engine.rooms.best import Best
from engine.rooms.placement import Placement, place_in_rooms
from engine.rooms.search import STATE_VERSION

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


def test_a_state_of_an_earlier_version_is_left_aside(
    uninterrupted: Placement, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "rooms.npz"
    with monkeypatch.context() as earlier:
        earlier.setattr(placement_module, "STATE_VERSION", STATE_VERSION - 1)
        place(max_work=0.1, checkpoint=FileCheckpoint(path))
    with pytest.raises(InvalidProblemError, match="search version"):
        place(checkpoint=FileCheckpoint(path))
    again = place(checkpoint=FileCheckpoint(path, is_private=True))
    assert again.work == uninterrupted.work


@pytest.mark.parametrize("looks", range(1, 12))
def test_an_equal_placement_of_the_interrupted_run_changes_nothing(
    tmp_path: Path, looks: int
) -> None:
    """Only four scores occur, so many placements have equal worth, up to rounding."""
    rng = np.random.default_rng(3)
    scores = rng.choice([0.1, 0.2, 0.3, 0.7], size=(24, 24))
    scores = (scores + scores.T) / 2.0
    rooms = Rooms(tuple(f"R{k}" for k in range(10)), np.array([3] * 4 + [2] * 6))
    whole = place_in_rooms(scores, rooms, max_seconds=None)
    checkpoint, asked = FileCheckpoint(tmp_path / "rooms.npz"), 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > looks

    place_in_rooms(scores, rooms, max_seconds=None, checkpoint=checkpoint, should_stop=should_stop)
    again = place_in_rooms(scores, rooms, max_seconds=None, checkpoint=checkpoint)
    assert again.room.tolist() == whole.room.tolist()


def test_placements_that_differ_by_rounding_are_as_good_as_each_other() -> None:
    """One of an interrupted run, worth 1.8e-15 more by the order of its sum, replaced the other."""
    one = Best(np.zeros(2, dtype=np.int64), 11.555312834261231, (0, 0))
    assert one.is_as_good_as(replace(one, value=11.555312834261233))
    assert not one.is_as_good_as(replace(one, value=11.5553128343))
    assert not one.is_as_good_as(replace(one, n_outside=(0, 1)))
    assert not one.is_as_good_as(replace(one, levels=(1, 0)))
