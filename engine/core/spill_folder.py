"""Where large files without names are made."""

import os
import tempfile

ON_DISK = "/var/tmp"  # noqa: S108 - only files without names are made there


def spill_folder() -> str:
    """Return TMPDIR if it is given, else /var/tmp if that can be written, else the system's place.

    Many systems keep /tmp in memory, which these files are there to spare; /var/tmp is on a disk
    (Filesystem Hierarchy Standard 3.0, 5.15).
    """
    if "TMPDIR" not in os.environ and os.access(ON_DISK, os.W_OK | os.X_OK):
        return ON_DISK
    return tempfile.gettempdir()
