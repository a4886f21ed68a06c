"""Arrays beyond the budget lie in files whose room on the disk is certain."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from engine.core import array_store
from engine.core.array_store import ArrayStore


def test_arrays_beyond_the_budget_lie_in_files_that_nothing_can_leave_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process left them for ever while they had names."""
    sizes: list[int] = []
    reserve = array_store._reserve

    def noted(handle: int, size: int) -> None:
        reserve(handle, size)
        sizes.append(os.stat(handle).st_size)
        assert os.stat(handle).st_dev == tmp_path.stat().st_dev

    monkeypatch.setattr(array_store, "_reserve", noted)
    monkeypatch.setattr(array_store, "FILE_BYTES", 1)
    store = ArrayStore(memory_bytes=80, folder=tmp_path)
    inside, outside = np.arange(10.0), np.arange(12.0)
    assert store.keep(inside) is inside
    kept = store.keep(outside)
    assert kept is not outside
    assert_array_equal(kept, outside)
    kept += 1.0
    assert sizes == [96]
    assert not list(tmp_path.iterdir())
    del store
    assert kept[-1] == 12.0


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are read from /proc")
def test_many_arrays_share_a_file_and_its_descriptor(tmp_path: Path) -> None:
    """Each had its own: a usual limit of 1,024 ended the learning from many pictures."""
    before = len(os.listdir("/proc/self/fd"))
    store = ArrayStore(memory_bytes=0, folder=tmp_path)
    kept = [store.keep(np.full((3, 1 + k % 5), float(k))) for k in range(2000)]
    assert len(os.listdir("/proc/self/fd")) < before + 5
    assert all((array == k).all() and array.shape == (3, 1 + k % 5) for k, array in enumerate(kept))
    assert all(array.ctypes.data % 64 == 0 for array in kept)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the platform reserves no room")
def test_a_full_disk_is_an_error_and_not_the_end_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse file was made whatever the room, and writing its pages killed the process."""

    def refuse(handle: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="No space left"):
        ArrayStore(memory_bytes=0, folder=tmp_path).keep(np.ones(1000))
