"""Each home of files keeps the same promises; a bucket also over a bad road."""

import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile

from engine import StoppedError
from tests.webapp.files.store.servers import Road, object_store
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.common.models import Installation
from webapp.files import store
from webapp.files.storage import array_path, keep_array, keep_bytes, read_arrays, write_arrays
from webapp.jobs.checkpoint import StoredCheckpoint

pytestmark = pytest.mark.django_db  # a folder without a mark asks the database

UUID = "00000000-0000-4000-8000-000000000001"


@pytest.fixture
def road(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Road]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with object_store() as (url, road):
        settings.STORE_URL = url
        yield road


@pytest.fixture(params=["folder", "bucket"])
def home(request: pytest.FixtureRequest, settings: LazySettings) -> str:
    if request.param == "bucket":
        request.getfixturevalue("road")
    return str(request.param)


def on_another_host(settings: LazySettings, tmp_path: Path) -> Path:
    """Go on as a host whose cache is empty; a shared folder is where it was."""
    if settings.STORE_URL:
        settings.MEDIA_ROOT = tmp_path / "another"
    return Path(settings.MEDIA_ROOT)


def names(folder: str = "organisation-1") -> set[str]:
    root = store.store().root
    return {file.path.relative_to(root).as_posix() for file in store.files(root / folder)}


@pytest.mark.usefixtures("home")
def test_what_one_host_keeps_another_reads(settings: LazySettings, tmp_path: Path) -> None:
    array = np.arange(12.0).reshape(3, 4)
    keep_array(array_path(1, "proposals", UUID, ".npy"), array)
    on_another_host(settings, tmp_path)
    path = store.get(array_path(1, "proposals", UUID, ".npy"))
    assert np.load(path, mmap_mode="r").tolist() == array.tolist()
    assert names() == {f"organisation-1/proposals/{UUID}.npy"}


@pytest.mark.usefixtures("home")
def test_what_is_removed_is_gone_everywhere(settings: LazySettings, tmp_path: Path) -> None:
    path = array_path(1, "models", UUID)
    keep_bytes(path, b"weights")
    store.remove(path)
    assert not path.exists()
    on_another_host(settings, tmp_path)
    path = array_path(1, "models", UUID)
    assert not store.get(path).exists()
    assert not store.store().has(path)


@pytest.mark.usefixtures("home")
def test_what_is_rewritten_is_read_anew(settings: LazySettings, tmp_path: Path) -> None:
    first = Path(settings.MEDIA_ROOT)
    keep_bytes(array_path(1, "checkpoints", UUID), b"one")
    on_another_host(settings, tmp_path)
    path = store.get(array_path(1, "checkpoints", UUID), fresh=True)
    assert path.read_bytes() == b"one"
    settings.MEDIA_ROOT = first
    keep_bytes(array_path(1, "checkpoints", UUID), b"two")
    on_another_host(settings, tmp_path)
    assert store.get(path, fresh=True).read_bytes() == b"two"


@pytest.mark.usefixtures("home")
def test_a_checkpoint_goes_on_on_another_host(settings: LazySettings, tmp_path: Path) -> None:
    StoredCheckpoint(array_path(1, "checkpoints", UUID)).save({"theta": np.arange(3.0)})
    on_another_host(settings, tmp_path)
    saved = StoredCheckpoint(array_path(1, "checkpoints", UUID)).load()
    assert saved is not None
    assert saved["theta"].tolist() == [0, 1, 2]


@pytest.mark.usefixtures("home")
def test_arrays_are_read_from_wherever(settings: LazySettings, tmp_path: Path) -> None:
    path = array_path(1, "proposals", UUID)
    write_arrays(path, doubt=np.ones(2))
    store.put(path)
    on_another_host(settings, tmp_path)
    assert read_arrays(array_path(1, "proposals", UUID))["doubt"].tolist() == [1, 1]


@pytest.mark.django_db
@pytest.mark.usefixtures("home")
def test_a_store_of_another_database_is_refused(settings: LazySettings, tmp_path: Path) -> None:
    store.check()
    store.check()
    Installation.objects.update(store_mark="somebody else's")
    with pytest.raises(store.StoreAwayError, match="another database"):
        store.check()


@pytest.mark.django_db
def test_a_shared_folder_that_is_not_mounted_is_no_empty_store(settings: LazySettings) -> None:
    store.check()
    root = Path(settings.MEDIA_ROOT)
    keep_bytes(array_path(1, "models", UUID), b"weights")
    shutil.move(root, root.with_name("elsewhere"))
    root.mkdir()
    with pytest.raises(store.StoreAwayError, match="not mounted"):
        store.get(array_path(1, "models", UUID))
    with pytest.raises(store.StoreAwayError, match="not mounted"):
        store.check()
    shutil.rmtree(root)
    shutil.move(root.with_name("elsewhere"), root)
    assert store.get(array_path(1, "models", UUID)).read_bytes() == b"weights"
    store.check()


@pytest.mark.parametrize("trouble", ["500", "cut", "away", "slow"])
def test_a_bucket_over_a_bad_road(
    road: Road, settings: LazySettings, tmp_path: Path, trouble: str
) -> None:
    content = bytes(np.random.default_rng(0).integers(0, 256, 300_000, dtype=np.uint8))
    path = array_path(1, "models", UUID)
    road.next = [trouble]
    keep_bytes(path, content)
    on_another_host(settings, tmp_path)
    road.next = [trouble, "pass", trouble]
    assert store.get(array_path(1, "models", UUID)).read_bytes() == content
    assert not list(Path(settings.MEDIA_ROOT).rglob("*.part"))


def test_a_bucket_that_stays_away_is_named(road: Road) -> None:
    path = array_path(1, "models", UUID)
    keep_bytes(path, b"weights")
    road.next = ["away"] * 50
    with pytest.raises(store.StoreAwayError):
        store.store().has(path)
    with pytest.raises(store.StoreAwayError):
        keep_bytes(path, b"weights")
    assert store.get(path).read_bytes() == b"weights"  # of this host's copies


def test_a_job_waits_for_the_store_and_goes_on(road: Road) -> None:
    waited: list[float] = []

    def wait() -> None:
        waited.append(time.monotonic())
        road.next = []

    road.next = ["away"] * 50
    with store.persevering(wait):
        keep_bytes(array_path(1, "models", UUID), b"weights")
    assert len(waited) == 1
    assert names() == {f"organisation-1/models/{UUID}.npz"}


def test_a_job_that_is_cancelled_waits_no_longer(road: Road) -> None:
    def wait() -> None:
        raise StoppedError("cancelled")

    road.next = ["away"] * 50
    with store.persevering(wait), pytest.raises(StoppedError):
        keep_bytes(array_path(1, "models", UUID), b"weights")


def test_a_checkpoint_is_no_reason_to_wait(road: Road) -> None:
    road.next = ["away"] * 50
    StoredCheckpoint(array_path(1, "checkpoints", UUID)).save({"theta": np.zeros(1)})
    road.next = []
    assert names() == set()


@pytest.mark.django_db
def test_a_damaged_checkpoint_does_not_hold_its_job_for_ever(
    road: Road, settings: LazySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that was killed as it wrote answered 500 for this one file from then on."""
    store.check()
    checkpoint = StoredCheckpoint(array_path(1, "checkpoints", UUID))
    checkpoint.save({"theta": np.zeros(1)})
    on_another_host(settings, tmp_path)
    checkpoint = StoredCheckpoint(array_path(1, "checkpoints", UUID))
    road.damaged = UUID.encode()
    monkeypatch.setattr("webapp.jobs.checkpoint.PATIENCE_SECONDS", 0.0)
    with store.persevering(lambda: None):
        assert checkpoint.load() is None
        with pytest.raises(store.UnreadableFileError, match="not for a file of this job"):
            store.get(array_path(1, "models", UUID), patience=0.0)
    road.damaged = b""
    checkpoint.save({"theta": np.ones(1)})
    with store.persevering(lambda: None):
        assert checkpoint.load()["theta"] == 1.0


@pytest.mark.usefixtures("road")
def test_copies_make_room_for_others_but_not_those_in_use(settings: LazySettings) -> None:
    settings.STORE_CACHE_GB = 1e-6
    paths = [array_path(1, "proposals", UUID[:-1] + str(k), ".npy") for k in range(3)]
    for path in paths:
        keep_bytes(path, bytes(600))
    long_ago = time.time() - 2 * 3600
    for path in paths[:2]:
        os.utime(path, (long_ago, long_ago))
    store.store.__globals__["_store"].cache_clear()
    assert store.tidy() == 2
    assert [path.exists() for path in paths] == [False, False, True]
    assert store.get(paths[0]).stat().st_size == 600


def test_a_store_that_cannot_list_transfers_is_tidied_all_the_same(road: Road) -> None:
    path = array_path(1, "models", UUID)
    keep_bytes(path, b"weights")
    part = path.with_name(f".{path.name}.1.part")
    part.write_bytes(b"half")
    os.utime(part, (0, 0))
    store.store.__globals__["_store"].cache_clear()
    road.next = ["501"]
    assert store.tidy() == 1
    assert not part.exists()


@pytest.mark.django_db
def test_pages_say_that_the_store_is_away(road: Road, bob: User, client_of: Any) -> None:
    client = client_of(bob)
    client.raise_request_exception = False
    road.next = ["away"] * 100
    data = "student_id,Bedtime\n" + "".join(
        f"N{k},{'Early' if k % 2 else 'Late'}\n" for k in range(9)
    )

    answer = client.post(
        "/cohorts/import/", {"file": SimpleUploadedFile("survey.csv", data.encode())}
    )
    assert answer.status_code == 503
    assert Page(answer, status=503).has("heading", "The store of files does not answer")
    assert answer["Retry-After"]
    road.next = []
    answer = client.post(
        "/cohorts/import/", {"file": SimpleUploadedFile("survey.csv", data.encode())}
    )
    assert answer.status_code == 302
    assert client.get(answer["Location"]).status_code == 200


@pytest.mark.django_db
def test_a_worker_takes_no_job_before_it_sees_the_store(
    road: Road, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from tasks import jobs

    monkeypatch.setattr(jobs, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(jobs, "_in_a_child", lambda look: look())  # the test's own transaction
    road.next = ["away"] * 10_000
    seen = road.seen

    def come_back() -> None:
        while road.seen < seen + 12:
            time.sleep(0.01)
        road.next = []

    back = threading.Thread(target=come_back)
    back.start()
    jobs.wait_for_store()
    back.join()
    assert "no job is taken: the store cannot be seen" in caplog.text


def test_the_look_is_in_another_process() -> None:
    from tasks import jobs

    assert jobs._in_a_child(lambda: str(os.getpid())) != str(os.getpid())
    assert jobs._in_a_child(lambda: "") == ""
