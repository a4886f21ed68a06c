"""Files in a bucket of an S3 object store, with copies in a folder of this host."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import boto3
import structlog
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.handlers import add_expect_header

from engine.core.whole_file import whole_file
from webapp.files.store.folder import remove_parts
from webapp.files.store.protocol import MARK, UNFINISHED_SECONDS, StoreAwayError, StoredFile

log = structlog.get_logger(__name__)

_HOLD = ".held"  # a mark that a backup sets while it copies
_HOLD_SECONDS = 24 * 3600  # seconds after which the mark of a killed backup is ignored
_USED_SECONDS = 3600.0  # seconds: a copy used since then is not removed, whatever room it takes
_ABSENT = {"404", "NoSuchKey", "NotFound"}
_UNABLE = {"501", "NotImplemented", "MethodNotAllowed"}  # answer of some S3 stores
# Parts of 16 MB: a broken connection loses no more. Both sides verify the checksum of each.
_TRANSFER = TransferConfig(multipart_threshold=64 << 20, multipart_chunksize=16 << 20)
_CLIENT = Config(
    connect_timeout=3,
    read_timeout=10,
    retries={"mode": "standard", "max_attempts": 3},
    s3={"addressing_style": "path"},
)

T = TypeVar("T")


class BucketStore:
    """Store with a bucket as home; ``root`` holds copies, and the least recently used make room.

    Parameters
    ----------
    url : str
        ``s3://BUCKET/PREFIX?endpoint=https://store.example&region=eu-1``. The credentials are
        ``AWS_ACCESS_KEY_ID`` and ``AWS_SECRET_ACCESS_KEY``, or the machine's own role.
    root : Path
        Folder of the copies, on this host alone.
    cache_bytes : int
        Limit of the copies' size.
    """

    is_in_place = False

    def __init__(self, url: str, root: Path, *, cache_bytes: int) -> None:
        parts = urlsplit(url)
        options = parse_qs(parts.query)
        self.root = root
        self._bucket = parts.netloc
        self._prefix = f"{parts.path.strip('/')}/".lstrip("/")
        self._cache_bytes = cache_bytes
        self._client: Any = boto3.session.Session().client(
            "s3",
            endpoint_url=options.get("endpoint", [None])[0],
            region_name=options.get("region", ["us-east-1"])[0],
            config=_CLIENT,
        )
        # With "Expect: 100-continue", botocore reads for ever if the answer breaks off within.
        self._client.meta.events.unregister("before-call.s3", add_expect_header)

    def put(self, path: Path) -> None:
        """Send a file; it appears whole or not at all."""
        self._ask(
            lambda: self._client.upload_file(str(path), self._bucket, self._key(path),
                                             Config=_TRANSFER)
        )  # fmt: skip

    def get(self, path: Path, *, fresh: bool = False) -> bool:
        """Fetch a file unless this host has a copy of it."""
        if not fresh and path.exists():
            _note_use(path)
            return True
        found = self._head(self._key(path))
        if found is None:
            if fresh:
                path.unlink(missing_ok=True)
            return False
        tag = _tag_path(path)
        if fresh and path.exists() and tag.exists() and tag.read_text() == found["ETag"]:
            return True
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._ask(lambda: self._fetch(path))
        if fresh:
            with whole_file(tag) as file:
                file.write(found["ETag"].encode())
        return True

    def has(self, path: Path) -> bool:
        """Return True if the bucket has the file."""
        return self._head(self._key(path)) is not None

    def remove(self, path: Path) -> None:
        """Remove the copy, and the object unless a backup is being made.

        An object that stays for that reason has no row; the daily walk removes it.
        """
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
            _tag_path(path).unlink(missing_ok=True)
        if self._is_held():
            return
        key = self._key(path)
        self._ask(lambda: self._client.delete_object(Bucket=self._bucket, Key=key))
        if not path.suffix:  # may be a folder
            for entry in self._listed(f"{key}/"):
                name = entry["Key"]
                self._ask(partial(self._client.delete_object, Bucket=self._bucket, Key=name))

    def files(self, folder: Path) -> Iterator[StoredFile]:
        """List the files below a folder."""
        prefix = self._prefix if folder == self.root else f"{self._key(folder)}/"
        for entry in self._listed(prefix):
            name = entry["Key"].removeprefix(self._prefix)
            if not name.startswith("."):
                modified = entry["LastModified"].timestamp()
                yield StoredFile(self.root / name, entry["Size"], modified)

    def hold(self, target: Path) -> list[Path]:
        """List everything; from now on no file is removed."""
        self._ask(lambda: self._client.put_object(
            Bucket=self._bucket, Key=self._prefix + _HOLD, Body=b""))  # fmt: skip
        target.mkdir(mode=0o700)
        return [file.path for file in self.files(self.root)]

    def release(self) -> None:
        """Allow the removal of files again."""
        self._ask(lambda: self._client.delete_object(
            Bucket=self._bucket, Key=self._prefix + _HOLD))  # fmt: skip

    def read_mark(self) -> str:
        """Read the mark's object."""
        if self._head(self._prefix + MARK) is None:
            return ""
        answer = self._ask(
            lambda: self._client.get_object(Bucket=self._bucket, Key=self._prefix + MARK)[
                "Body"
            ].read()
        )
        return str(answer.decode("ascii").strip())

    def write_mark(self, mark: str) -> None:
        """Write the mark's object."""
        self._ask(lambda: self._client.put_object(
            Bucket=self._bucket, Key=self._prefix + MARK, Body=mark.encode()))  # fmt: skip

    def tidy(self) -> int:
        """Abort transfers that broke off a day ago, and make room among the copies."""
        return self._end_transfers() + remove_parts(self.root) + self._trim()

    def _end_transfers(self) -> int:
        ended = 0
        for upload in self._ask(self._transfers):
            if upload["Initiated"].timestamp() < time.time() - UNFINISHED_SECONDS:
                key, upload_id = upload["Key"], upload["UploadId"]
                abort = self._client.abort_multipart_upload
                self._ask(partial(abort, Bucket=self._bucket, Key=key, UploadId=upload_id))
                ended += 1
        return ended

    def _transfers(self) -> list[Any]:
        """Return unfinished transfers; none if the store cannot list them."""
        pages = self._client.get_paginator("list_multipart_uploads")
        try:
            found = list(pages.paginate(Bucket=self._bucket, Prefix=self._prefix))
        except ClientError as error:
            if error.response["Error"]["Code"] not in _UNABLE:
                raise
            log.info("the store does not list unfinished transfers; let it expire them itself")
            return []
        return [upload for page in found for upload in page.get("Uploads", [])]

    def _trim(self) -> int:
        """Remove the least recently used copies until the rest fits."""
        copies, total, removed = [], 0, 0
        for folder, _, names in os.walk(self.root):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    found = os.lstat(os.path.join(folder, name))
                    copies.append((found.st_atime, found.st_size, Path(folder, name)))
                    total += found.st_size
        for used, size, path in sorted(copies):
            if total <= self._cache_bytes or used > time.time() - _USED_SECONDS:
                break
            path.unlink(missing_ok=True)
            total -= size
            removed += 1
        return removed

    def _fetch(self, path: Path) -> None:
        with whole_file(path) as file:
            self._client.download_fileobj(self._bucket, self._key(path), file, Config=_TRANSFER)

    def _is_held(self) -> bool:
        held = self._head(self._prefix + _HOLD)
        return held is not None and held["LastModified"].timestamp() > time.time() - _HOLD_SECONDS

    def _head(self, key: str) -> Any:
        """Return the bucket's answer on an object; None if it has none."""
        try:
            return self._client.head_object(Bucket=self._bucket, Key=key)
        except ClientError as error:
            if error.response["Error"]["Code"] in _ABSENT:
                return None
            raise StoreAwayError(_words(error)) from error
        except (BotoCoreError, HTTPClientError) as error:
            raise StoreAwayError(_words(error)) from error

    def _listed(self, prefix: str) -> list[Any]:
        pages = self._client.get_paginator("list_objects_v2")
        found = self._ask(lambda: list(pages.paginate(Bucket=self._bucket, Prefix=prefix)))
        return [entry for page in found for entry in page.get("Contents", [])]

    def _key(self, path: Path) -> str:
        return self._prefix + path.relative_to(self.root).as_posix()

    def _ask(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except (BotoCoreError, Boto3Error, ClientError, HTTPClientError) as error:
            raise StoreAwayError(_words(error)) from error


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _tag_path(path: Path) -> Path:
    """Return the path where this host notes the version of its copy of a rewritten file."""
    return path.with_name(f".{path.name}.tag")


def _note_use(path: Path) -> None:
    """Record the use of a copy, even on a disk mounted without access times."""
    with contextlib.suppress(OSError):
        found = path.stat()
        if found.st_atime < time.time() - _USED_SECONDS / 4:
            os.utime(path, ns=(time.time_ns(), found.st_mtime_ns))
