"""What the web server does besides answering; gunicorn reads this as its settings."""

from typing import Any

from webapp.common.collector import spare_what_stays


def when_ready(_server: Any) -> None:
    """Once the application is loaded and before the first fork: its processes share what stays.

    A database connection must not be open in a process that forks; see `tasks.sweep`.
    """
    from django.db import connections  # the settings are there only now

    connections.close_all()
    spare_what_stays()
