"""How the product logs: lines for people on stderr, and a line of JSON a request and a job."""

from typing import Any

import structlog

_SHARED_PROCESSORS = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def logging_settings(*, level: str, lines_file: str) -> dict[str, Any]:
    """Configure structlog, and return what Django's LOGGING takes; settings call it once."""
    structlog.configure(
        processors=[*_SHARED_PROCESSORS, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    lines: dict[str, Any] = {"class": "logging.StreamHandler"}
    if lines_file:
        lines = {"class": "logging.FileHandler", "filename": lines_file, "delay": True}
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
            "django": {"level": "INFO"},
            "django.security.DisallowedHost": {"level": "ERROR"},
            "axes": {"level": "WARNING"},
            "numba": {"level": "WARNING"},
            # What is damaged in a picture is told to whoever uploaded it.
            "tifffile": {"level": "CRITICAL"},
        },
    }


def _formatters() -> dict[str, Any]:
    without_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    logfmt = structlog.processors.LogfmtRenderer(
        key_order=["timestamp", "level", "event"], bool_as_flag=False
    )
    return {
        "line": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [without_meta, structlog.processors.format_exc_info, logfmt],
            "foreign_pre_chain": _SHARED_PROCESSORS,
        },
        "json": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [without_meta, structlog.processors.JSONRenderer()],
        },
    }
