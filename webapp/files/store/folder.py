"""Files in a folder of this host, or in one that all hosts mount."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from engine.core.whole_file import whole_file
from webapp.files.store.faults import faults_as_away
from webapp.files.store.protocol import MARK, UNFINISHED_SECONDS, StoreAwayError, StoredFile

# Folders whose mark this process, or one that it was forked from, has seen. A new installation has
# no mark yet.
_marked: set[Path] = set()


class FolderStore:
    """Store whose files have their paths as home; nothing is copied.

    A shared folder that is not mounted looks like an empty one. Its mark shows the difference: a
    file counts as missing only if the mark is there.

    Parameters
    ----------
    root : Path
    has_mark : callable, optional
        Returns True if the database knows a mark of this store; called if the folder has none. A
        file written into the folder below a missing mount would be lost when the mount is back.
    """

    is_in_place = True

    def __init__(self, root: Path, has_mark: Callable[[], bool] = lambda: False) -> None:
        self.root = root
        self._has_mark = has_mark

    def put(self, path: Path) -> None:
        """Check that the folder did not go away meanwhile; nothing else is left to do."""
        self._check_mounted()

    def get(self, path: Path, *, fresh: bool = False) -> bool:
        """Return True if the file is there."""
        return self.has(path)

    def has(self, path: Path) -> bool:
        """Return True if the file is there; if not, check that it is the right folder."""
        try:
            if path.exists():
                return True
        except OSError as error:  # a stale mount
            raise StoreAwayError(str(error)) from error
        self._check_mounted()
        return False

    def remove(self, path: Path) -> None:
        """Remove a file or folder."""
        with faults_as_away():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def files(self, folder: Path) -> Iterator[StoredFile]:
        """Walk a folder."""
        for name, _, files in os.walk(folder):
            for file in files:
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                    path = Path(name, file)
                    found = path.lstat()
                    yield StoredFile(path, found.st_size, found.st_mtime)

    def hold(self, target: Path) -> list[Path]:
        """Give every file a second name, or a copy where the file system has no links.

        A file removed meanwhile belongs to a row that was removed before; a half-written one
        (``*.part``) to no row.
        """
        target.mkdir(mode=0o700)
        for name, folders, files in os.walk(self.root):
            folders[:] = [folder for folder in folders if not folder.startswith(".")]
            folder = target / Path(name).relative_to(self.root)
            folder.mkdir(mode=0o700, exist_ok=True)
            for file in files:
                if file.endswith(".part"):
                    continue
                try:
                    os.link(Path(name, file), folder / file)
                except FileNotFoundError:
                    continue
                except OSError:
                    shutil.copy2(Path(name, file), folder / file)
        return []

    def release(self) -> None:
        """Do nothing: nothing was held."""

    def read_mark(self) -> str:
        """Read the mark's file."""
        try:
            mark = (self.root / MARK).read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise StoreAwayError(str(error)) from error
        _marked.add(self.root)
        return mark

    def write_mark(self, mark: str) -> None:
        """Write the mark's file."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            with whole_file(self.root / MARK) as file:
                file.write(mark.encode())
        except OSError as error:
            raise StoreAwayError(str(error)) from error

    def tidy(self) -> int:
        """Remove files that a killed process left half written."""
        return remove_parts(self.root)

    def _check_mounted(self) -> None:
        if not self.read_mark() and (self.root in _marked or self._has_mark()):
            raise StoreAwayError(f"{self.root} is not mounted, or is another folder.")


def remove_parts(root: Path) -> int:
    """Remove files ``*.part`` that were not written for a day; return their number."""
    untouched_since, removed = time.time() - UNFINISHED_SECONDS, 0
    for folder, _, names in os.walk(root):
        for path in (Path(folder, name) for name in names if name.endswith(".part")):
            with contextlib.suppress(FileNotFoundError):  # finished meanwhile
                if path.stat().st_mtime < untouched_since:
                    path.unlink()
                    removed += 1
    return removed
