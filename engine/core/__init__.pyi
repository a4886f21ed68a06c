"""Names of ``engine.core``; ``__init__.py`` imports each when it is first used."""

from .checkpoint import FileCheckpoint
from .errors import CertificateError, InfeasibleError, InvalidProblemError, StoppedError
from .progress import Progress
from .status import Status

__all__ = [
    "CertificateError",
    "FileCheckpoint",
    "InfeasibleError",
    "InvalidProblemError",
    "Progress",
    "Status",
    "StoppedError",
]
