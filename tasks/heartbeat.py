"""The worker's answer when the sweep asks for a sign of life."""

from typing import Any

from celery.worker.control import inspect_command

from webapp.monitoring.memory import memory


@inspect_command()
def report_heartbeat(state: Any, **kwargs: Any) -> dict[str, int]:
    """Return the number of concurrent jobs, and the used and total bytes of the host's memory."""
    used, total = memory() or (0, 0)
    processes = state.consumer.controller.stats()["pool"]["max-concurrency"]
    return {"processes": processes, "memory_used": int(used), "memory_total": int(total)}
