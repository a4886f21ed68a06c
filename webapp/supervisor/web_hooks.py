"""What a process of the web server does besides answering; gunicorn reads this as its settings."""

from typing import Any

from webapp.common.collector import spare_what_stays


def post_worker_init(_worker: Any) -> None:
    """Once the application is loaded and before the first request."""
    spare_what_stays()
