"""Files of arrays are replaced whole or not at all."""

import ast
import errno
import io
import os
import time
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError
from engine.core.npz_file import open_npz, read_array, read_npz, write_npz
from engine.crf.survey_features import make_survey_features
from engine.learning.roommates.model import load_roommate_model, make_roommate_model
from engine.learning.segmentation.example_store import StoredFeatures
from engine.learning.segmentation.model import (
    N_PARAMETERS,
    Detail,
    load_segmentation_model,
    make_segmentation_model,
)
from tests.learning.roommates.cohorts import random_survey


def roommate_model(weight):
    features = make_survey_features([random_survey(8)])
    return make_roommate_model(np.full(features.n_features, weight), features, 1.0, 1.0)


def segmentation_model(weight):
    return make_segmentation_model(
        np.full(N_PARAMETERS, weight), ridge=1.0, rho=0.5, detail=Detail(64)
    )


@pytest.fixture
def full_disk(monkeypatch):
    """Half of what is written arrives, then the disk is full."""

    def savez(file, **arrays):
        file.write(b"PK half a file")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", savez)


@pytest.mark.parametrize(
    ("make", "load"),
    [
        (roommate_model, load_roommate_model),
        (segmentation_model, load_segmentation_model),
    ],
)
def test_a_failed_save_leaves_the_old_model(make, load, tmp_path, request):
    path = tmp_path / "model.npz"
    make(1.0).save(path)
    request.getfixturevalue("full_disk")
    with pytest.raises(OSError, match="No space"):
        make(2.0).save(path)
    assert np.all(load(path).theta == 1.0)
    assert [file.name for file in tmp_path.iterdir()] == ["model.npz"]


def test_an_array_file_is_readable_by_those_who_could_read_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    write_npz(tmp_path / "arrays.npz", {"x": np.arange(3)})
    mode = (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "arrays.npz").stat().st_mode == mode
    os.chmod(tmp_path / "arrays.npz", 0o600)
    write_npz(tmp_path / "arrays.npz", {"x": np.arange(4)})
    assert (tmp_path / "arrays.npz").stat().st_mode & 0o777 == 0o600


def test_objects_are_refused(tmp_path):
    with pytest.raises(ValueError, match="allow_pickle"):
        write_npz(tmp_path / "arrays.npz", {"x": np.array([object()])})
    assert not list(tmp_path.iterdir())


def flipped(content, seed):
    """The file with one byte changed: any kind of damage, of its names and sizes too."""
    rng = np.random.default_rng(seed)
    changed = bytearray(content)
    changed[int(rng.integers(len(changed)))] ^= int(rng.integers(1, 256))
    return bytes(changed)


def foreign_files(tmp_path):
    """What people give for a model: other arrays, pickles, damaged and packed files."""
    arrays = {"format": np.array("x"), "theta": np.zeros(9)}
    np.savez_compressed(tmp_path / "packed.npz", **arrays)
    packed = (tmp_path / "packed.npz").read_bytes()
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    unknown, locked = bytearray(packed), bytearray(packed)
    place = packed.find(b"PK\x01\x02")
    unknown[place + 10] = 99  # a method of compression that nobody has
    locked[place + 8] |= 1  # encrypted
    yield from ((tmp_path / name).read_bytes() for name in ("array.npy", "objects.npy"))
    yield from (bytes(unknown), bytes(locked), packed[: len(packed) // 2], b"", b"text")
    yield from (announced((2**70,)), announced((10**13,)))
    yield without_array_header(arrays)
    yield from (flipped(packed, seed) for seed in range(300))


def announced(shape):
    """A file whose array is said to be of a size that nobody has."""
    head, whole = io.BytesIO(), io.BytesIO()
    facts = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, facts)
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("theta.npy", head.getvalue())
    return whole.getvalue()


def without_array_header(arrays):
    """A whole archive in which one array does not begin as an array does."""
    whole = io.BytesIO()
    np.savez(whole, **arrays)
    with zipfile.ZipFile(whole) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["theta.npy"] = b"\x00" + parts["theta.npy"][1:]
    with zipfile.ZipFile(whole := io.BytesIO(), "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return whole.getvalue()


@pytest.mark.parametrize("read", [read_npz, open_npz])
def test_an_array_with_a_damaged_header_is_refused(read, tmp_path):
    """Numpy answers with bytes for it, on which a model of trees asked for a data type."""
    path = tmp_path / "arrays.npz"
    path.write_bytes(without_array_header({"theta": np.zeros(9), "format": np.array("x")}))
    with pytest.raises(InvalidProblemError, match=r"arrays\.npz is no file of arrays, or damaged"):
        read(path)


@pytest.mark.parametrize("load", [load_roommate_model, load_segmentation_model])
def test_what_is_no_model_is_refused_in_one_sentence(load, tmp_path):
    """One array alone, and damage within packed arrays, used to end in a traceback."""
    for content in foreign_files(tmp_path):
        (tmp_path / "model.npz").write_bytes(content)
        with pytest.raises(
            InvalidProblemError, match=r"^model\.npz(: this is not a whole| is not a| was learned)"
        ):
            load(tmp_path / "model.npz")


def test_what_is_no_checkpoint_reads_as_none_and_what_are_no_features_too(tmp_path):
    for content in foreign_files(tmp_path):
        (tmp_path / "state.npz").write_bytes(content)
        assert StoredFeatures.load(tmp_path / "state.npz") is None
        state = FileCheckpoint(tmp_path / "state.npz").load()
        assert state is None or len(state) <= 2


def test_only_the_arrays_asked_for_are_read(tmp_path):
    write_npz(tmp_path / "arrays.npz", {"x": np.arange(3), "y": np.arange(4)})
    assert set(read_npz(tmp_path / "arrays.npz")) == {"x", "y"}
    assert set(read_npz(tmp_path / "arrays.npz", ("y", "z"))) == {"y"}


def test_a_damaged_checkpoint_reads_as_none(tmp_path):
    path = Path(tmp_path / "state.npz")
    path.write_bytes(b"PK\x03\x04 cut off")
    assert FileCheckpoint(path).load() is None


def test_a_checkpoint_is_read_array_by_array(tmp_path):
    """All points of a large job were read at once, and again at every retry."""
    state = {f"block{k}_point": np.full(2**17, float(k)) for k in range(24)}  # 1 MB each
    place = FileCheckpoint(tmp_path / "state.npz")
    place.save(state)
    tracemalloc.start()
    try:
        saved = place.load()
        for k in range(24):
            assert saved[f"block{k}_point"][-1] == k
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 2**20


def test_threads_take_turns_at_numpys_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Python 3.11 two threads that parse at once may both fail, once in some 100,000 arrays."""
    write_npz(tmp_path / "file.npz", {"a": np.zeros((3, 4)), "b": np.zeros(2)})
    np.save(tmp_path / "file.npy", np.zeros((3, 4)))
    parsing, most = 0, 0

    def parse_slowly(text: str) -> object:
        nonlocal parsing, most
        parsing += 1
        most = max(most, parsing)
        time.sleep(0.002)
        parsing -= 1
        return plain(text)

    plain = ast.literal_eval
    with open_npz(tmp_path / "file.npz") as opened, ThreadPoolExecutor(4) as pool:
        monkeypatch.setattr(ast, "literal_eval", parse_slowly)
        ways = (
            lambda: read_array(tmp_path / "file.npy", is_mapped=True),
            lambda: read_npz(tmp_path / "file.npz"),
            lambda: opened["a"],
        )
        for way in [pool.submit(way) for way in 5 * ways]:
            way.result()
    assert most == 1


def test_a_forked_child_reads_though_another_thread_was_reading(tmp_path: Path) -> None:
    write_npz(tmp_path / "file.npz", {"a": np.zeros(2_000_000)})
    is_over = Event()

    def keep_reading() -> None:
        while not is_over.is_set():
            read_npz(tmp_path / "file.npz")

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(keep_reading)
        try:
            for _ in range(10):
                child = os.fork()
                if child == 0:
                    read_npz(tmp_path / "file.npz")
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
        finally:
            is_over.set()
        reading.result()
