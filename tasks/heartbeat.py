"""The worker's answer when the sweep asks for a sign of life."""

from typing import Any

from celery.worker.control import inspect_command

from webapp.jobs.liveness import this_process
from webapp.monitoring.memory import memory


@inspect_command()
def report_heartbeat(state: Any, **kwargs: Any) -> dict[str, int | str]:
    """Return the name of the worker's process, the number of its concurrent jobs, and memory.

    The latter are the used and the total bytes of its host.
    """
    used, total = memory() or (0, 0)
    processes = state.consumer.controller.stats()["pool"]["max-concurrency"]
    return {
        "process": this_process(),
        "processes": processes,
        "memory_used": int(used),
        "memory_total": int(total),
    }
