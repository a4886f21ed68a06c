"""Files that a killed process left without a row go after a day, and no others."""

import os
import time
from pathlib import Path
from uuid import uuid4

import pytest

from webapp.accounts.models import User
from webapp.files import orphaned_files
from webapp.files.contents import FileStore
from webapp.files.orphaned_files import remove_orphaned_files
from webapp.files.storage import array_path, organisation_folder
from webapp.files.store.protocol import UNFINISHED_SECONDS
from webapp.segmentation.models import ImageFile, ImageSet, PredictionBatch
from webapp.segmentation.services.thumbnails import view_picture_path


def files_of(user: User) -> set[Path]:
    folder = organisation_folder(user.organisation)
    return {path for path in folder.rglob("*") if path.is_file()}


def age(*paths: Path) -> None:
    for path in paths:
        os.utime(path, (time.time() - UNFINISHED_SECONDS - 1,) * 2)


def write(user: User, kind: str, suffix: str) -> Path:
    path = array_path(user.organisation, kind, uuid4(), suffix)
    path.write_bytes(b"x")
    return path


@pytest.mark.usefixtures("batch")
def test_every_file_with_a_row_stays_however_old(bob: User, image: ImageFile) -> None:
    view_picture_path(bob.organisation_id, image.digest, None)
    before = files_of(bob)
    age(*before)
    assert remove_orphaned_files() == 0
    assert files_of(bob) == before


def test_files_without_rows_go_after_a_day(bob: User, image_set: ImageSet) -> None:
    kept = files_of(bob)
    content = FileStore(bob.organisation_id).put([b"an upload that was cut off by a kill"])
    FileStore(bob.organisation_id, "derived").put_derived(content.digest, ".thumb.jpg", b"small")
    left = [
        write(bob, "proposals", ".npz"),
        write(bob, "proposals", ".npy"),
        write(bob, "models", ".npz"),
        write(bob, "segmenters", "-preview-0.png"),
        write(bob, "masks", ".png"),
    ]
    assert remove_orphaned_files() == 0  # a running job may be about to write their rows
    age(*files_of(bob))
    assert remove_orphaned_files() == 7
    assert files_of(bob) == kept
    assert not any(path.exists() for path in left)


def test_rows_of_another_organisation_keep_nothing(
    bob: User, mallory: User, image: ImageFile
) -> None:
    content = FileStore(mallory.organisation_id).put([image.store.path(image.digest).read_bytes()])
    assert content.digest == image.digest
    age(*files_of(mallory), *files_of(bob))
    assert remove_orphaned_files() == 1
    assert files_of(mallory) == set()
    assert image.store.path(image.digest).exists()


def test_what_a_purge_did_not_come_to_release_goes(
    bob: User, batch: PredictionBatch, image_set: ImageSet
) -> None:
    image_set.delete()
    age(*files_of(bob))
    remove_orphaned_files()
    assert {path.name for path in files_of(bob)} == {batch.segmenter.path.name}


def test_a_file_that_gets_its_row_before_the_lock_stays(
    bob: User, image_set: ImageSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = FileStore(bob.organisation_id).put([b"bytes"])
    path = FileStore(bob.organisation_id).path(content.digest)
    age(path)
    lock = orphaned_files.lock_organisation

    def upload_then_lock(key: int) -> None:
        image_set.files.update(digest=content.digest)
        lock(key)

    monkeypatch.setattr(orphaned_files, "lock_organisation", upload_then_lock)
    remove_orphaned_files()
    assert path.exists()


def test_other_names_are_nobody_elses_business(bob: User, image_set: ImageSet) -> None:
    path = array_path(bob.organisation, "proposals", uuid4()).with_name("README.txt")
    path.write_bytes(b"x")
    strangers = write(bob, "strangers", ".json")
    age(path, strangers)
    assert remove_orphaned_files() == 0
