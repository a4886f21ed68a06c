"""Folder for large files without names."""

import os
import tempfile

ON_DISK = "/var/tmp"  # noqa: S108 - only files without names are made there


def spill_folder() -> str:
    """Return TMPDIR if it is set, else /var/tmp if it is writable, else the system's default.

    Many systems keep /tmp in memory, which these files must not use; /var/tmp is on a disk
    (Filesystem Hierarchy Standard 3.0, 5.15).
    """
    if "TMPDIR" not in os.environ and os.access(ON_DISK, os.W_OK | os.X_OK):
        return ON_DISK
    return tempfile.gettempdir()
