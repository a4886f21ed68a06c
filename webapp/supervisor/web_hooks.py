"""Hooks of the web server besides answering; gunicorn reads this as its settings."""

import logging
from pathlib import Path
from typing import Any

from gunicorn.glogging import Logger

from webapp.collector import freeze_loaded_objects
from webapp.monitoring.masking import mask
from webapp.monitoring.request_counts import request_counts, share_request_counts
from webapp.supervisor.linux import die_with_parent


class MaskingFormatter(logging.Formatter):
    """Formatter that masks personal links, tokens and passwords in another formatter's lines."""

    def __init__(self, inner: logging.Formatter | None) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        """Return the masked line, with its traceback."""
        return mask(self._inner.format(record))


class MaskingLogger(Logger):  # type: ignore[misc]  # gunicorn has no types
    """Logger of gunicorn: failed requests, and the access log if configured."""

    def setup(self, cfg: Any) -> None:
        """Open the logs as configured, and mask secrets in them."""
        super().setup(cfg)
        for handler in (*self.error_log.handlers, *self.access_log.handlers):
            handler.setFormatter(MaskingFormatter(handler.formatter))


logger_class = MaskingLogger


def when_ready(server: Any) -> None:
    """Prepare the loaded application before the first fork: its processes share all that stays.

    A database connection must not be open in a process that forks; see `tasks.sweep`.
    """
    from django.db import connections  # the settings are available only now

    compile_templates()
    connections.close_all()
    # One part per process, and one for its replacement while it ends.
    share_request_counts(2 * server.cfg.workers)
    freeze_loaded_objects()


def compile_templates() -> None:
    """Load all templates of the product, so that no visitor waits for one to be compiled."""
    from django.template import engines  # the settings are available only now

    for backend, pattern in (("django", "*.html"), ("jinja2", "*.jinja")):
        for folder in engines[backend].dirs:
            for path in sorted(Path(folder).rglob(pattern)):
                engines[backend].get_template(str(path.relative_to(folder)))


def pre_fork(_server: Any, worker: Any) -> None:
    """Choose the part in which the next process counts its requests."""
    worker.part_of_counts = request_counts().take_part()


def post_fork(server: Any, worker: Any) -> None:
    """End with the server, even if it is killed; count requests in the part that was chosen.

    At most half of the threads may wait to change the database.
    """
    from webapp.database.sqlite3.base import limit_waiting  # the settings are available only now

    die_with_parent(worker.ppid)
    request_counts().count_in(worker.part_of_counts)
    limit_waiting(max(server.cfg.threads // 2, 1))


def child_exit(_server: Any, worker: Any) -> None:
    """Free the part of an ended process for another one."""
    request_counts().free_part(worker.part_of_counts)
