"""File modes 600 and 700: only the product's own user may read files and folders.

The process's umask makes new files private, whatever the shell or service manager has set.
Existing ones (a folder made by somebody, files of an earlier version) are corrected when a process
starts; a process that may not correct them does not start.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

MASK = 0o077
_SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")


def make_new_files_private() -> None:
    """Make this process and its children create files and folders for their own user only."""
    os.umask(MASK)


def close_to_others(folder: Path, *, large: Path | None = None) -> str:
    """Remove other users' rights from a folder and everything in it.

    Parameters
    ----------
    large : path of a folder with very many files. It is entered only if others can enter it;
        otherwise its contents are out of their reach.

    Returns
    -------
    str
        "", or one sentence that names the folder that stays open and what to do. A file that
            cannot be changed is protected by its folder, which others cannot enter.
    """
    if folder == large and not _is_open(folder):
        return ""
    problem = _close(folder)
    if not problem:
        for path in _entries(folder, large):
            _close(path)
    return problem


def close_files_to_others(paths: Iterable[Path]) -> str:
    """Remove other users' rights from single files; return the first problem, or ""."""
    return next(filter(None, map(_close, paths)), "")


def database_files(path: Path) -> list[Path]:
    """Return the files of an SQLite database, including those with its latest writes."""
    return [path.with_name(path.name + suffix) for suffix in _SQLITE_SUFFIXES]


def _entries(folder: Path, large: Path | None) -> Iterator[Path]:
    for name, folders, files in os.walk(folder):
        folders[:] = [
            entry for entry in folders if Path(name, entry) != large or _is_open(Path(name, entry))
        ]
        yield from (Path(name, entry) for entry in (*folders, *files))


def _is_open(path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return bool(path.lstat().st_mode & MASK)
    return False


def _close(path: Path) -> str:
    """Correct the mode of one path; leave links alone, as their target may be another program's."""
    with contextlib.suppress(FileNotFoundError):  # removed meanwhile, or not made yet
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) or not mode & MASK:
            return ""
        try:
            path.chmod(stat.S_IMODE(mode) & ~MASK)
        except PermissionError:
            return (
                f"{path} can be read by other users of this machine (mode "
                f"{stat.S_IMODE(mode):o}), and it belongs to somebody else, so that it cannot be "
                f"corrected. Make it mode {'700' if stat.S_ISDIR(mode) else '600'} and its owner "
                "the user that runs Bethe Hall, or name a folder inside it."
            )
        except FileNotFoundError:
            return ""
        except OSError as error:  # for example a disk mounted read-only
            return f"{path} can be read by other users of this machine: {error.strerror}."
    return ""
