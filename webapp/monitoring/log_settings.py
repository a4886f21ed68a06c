"""Logging: lines for people on stderr, and one line of JSON per request and per job."""

import fcntl
import logging
import os
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import IO, Any

import structlog

from webapp.monitoring.masking import mask_all

_SHARED_PROCESSORS: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


class LinesFile(WatchedFileHandler):
    """Log file that skips lines if the disk is full or the folder is not writable.

    Otherwise a request would fail because its line cannot be written. Each program opens the file
    again once another program moved it, so that no line is lost. A file that has grown to
    ``max_bytes`` is moved to ``NAME.1``, in place of the one before; with 0 it stays.
    """

    def __init__(self, filename: str | Path, *, max_bytes: int = 0) -> None:
        super().__init__(filename, delay=True)
        self._max_bytes = max_bytes

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or skip it."""
        try:
            super().emit(record)
            if self._max_bytes and self.stream is not None:
                self._move_if_large(self.stream)
        except OSError:  # the file cannot be opened
            self.handleError(record)

    def _move_if_large(self, stream: IO[str]) -> None:
        """Move the file, unless another program was quicker."""
        if os.fstat(stream.fileno()).st_size < self._max_bytes:
            return
        fcntl.lockf(stream, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(stream.fileno()), os.stat(self.baseFilename)):
                os.replace(self.baseFilename, f"{self.baseFilename}.1")
        finally:
            fcntl.lockf(stream, fcntl.LOCK_UN)

    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing: a report on standard error would go to the same full disk."""


def logging_settings(*, level: str, lines_file: str, max_lines_bytes: int = 0) -> dict[str, Any]:
    """Configure structlog, and return what Django's LOGGING takes; settings call it once."""
    structlog.configure(
        processors=[*_SHARED_PROCESSORS, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    lines: dict[str, Any] = {"class": "logging.StreamHandler"}
    if lines_file:
        lines = {"()": LinesFile, "filename": lines_file, "max_bytes": max_lines_bytes}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": _formatters(),
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "line"},
            "lines": lines | {"formatter": "json"},
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "bethe_hall.lines": {"handlers": ["lines"], "level": "INFO", "propagate": False},
            "django": {"level": "INFO", "handlers": []},  # no mails with the content of a request
            "django.server": {"level": "INFO", "handlers": ["stderr"], "propagate": False},
            "django.security.DisallowedHost": {"level": "ERROR"},
            "axes": {"level": "WARNING"},
            "numba": {"level": "WARNING"},
            # Damage in a picture is reported to the person who uploaded it.
            "tifffile": {"level": "CRITICAL"},
        },
    }


def _formatters() -> dict[str, Any]:
    logfmt = structlog.processors.LogfmtRenderer(
        key_order=["timestamp", "level", "event"], bool_as_flag=False
    )
    before = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        _without_secrets,
    ]
    return {
        "line": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [*before, logfmt],
            "foreign_pre_chain": _SHARED_PROCESSORS,
        },
        "json": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [*before, structlog.processors.JSONRenderer()],
            "foreign_pre_chain": _SHARED_PROCESSORS,
        },
    }


def _without_secrets(logger: Any, name: str, event: dict[str, Any]) -> dict[str, Any]:
    """Mask a line before it is written out, so that quotes and brackets stay intact."""
    return {key: mask_all(value) for key, value in event.items()}
