"""Version of the running code; stored with every run so that a result can be traced."""

import subprocess
from functools import lru_cache

from webapp.instance import BASE_DIR

RELEASE = "0.2.0"


@lru_cache(maxsize=1)
def code_version() -> str:
    """Return the release, with the commit of a checkout: ``0.1.0+1a2b3c4d5e``."""
    try:
        answer = subprocess.run(  # noqa: S603 - fixed words and our own folder
            ["git", "-C", str(BASE_DIR), "rev-parse", "--short=10", "HEAD"],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return RELEASE
    return f"{RELEASE}+{answer.stdout.strip()}"
