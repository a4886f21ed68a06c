"""Run one program of an installation: ``python -m webapp.supervisor.roles ROLE``.

ROLE is ``web``, ``worker`` (short jobs, for which people wait), ``learner`` (hours of learning and
predicting, at low priority) or ``sweep``; on a host with a graphics card also ``card-learner``
(learning networks); if one learning is spread over hosts, also ``scheduler`` (on one of them) and
``spread`` (on each).

`bin/start` runs all of them on one machine. If a service manager starts each program, on one
host or on many, use this command: it needs ``DATABASE_URL`` and ``REDIS_URL``, which all hosts
share, and takes its sizes from the same variables (``webapp/sizing.py``).
"""

import argparse
import hashlib
import os
import sys
from pathlib import Path

from webapp.instance import BASE_DIR, instance_folder
from webapp.jobs.liveness import machine_name
from webapp.private_files import make_new_files_private
from webapp.sizing import Sizes, sizes

SHORT_NICE = 10  # a placement takes a tenth of a core that pages need, not half
ROLES = ("web", "worker", "learner", "card-learner", "sweep", "scheduler", "spread")
SPREAD_PORT = "8786"


def web_command(bind: str, size: Sizes) -> tuple[str, ...]:
    """Return the web server's command; ``bind`` is an address and a port."""
    return (
        sys.executable, "-m", "gunicorn", "webapp.wsgi:application",
        "--config", "python:webapp.supervisor.web_hooks",
        "--preload",
        "--bind", bind,
        "--workers", str(size.web_workers),
        "--threads", str(size.web_threads),
        "--worker-class", "webapp.supervisor.web_worker.QueueingWorker",
        "--worker-tmp-dir", str(_memory_folder()),
        "--timeout", "120",
        "--graceful-timeout", "3",
        "--max-requests", "2000",
        "--max-requests-jitter", "200",
        "--chdir", str(BASE_DIR),
        "--access-logfile", "/dev/null",
        "--no-control-socket",
    )  # fmt: skip


def worker_command(queue: str, processes: int) -> tuple[str, ...]:
    """Return the command of a worker, which runs the jobs of a queue (short, long or card)."""
    return (
        sys.executable, "-m", "celery", "--app", "tasks", "--workdir", str(BASE_DIR), "worker",
        "--queues", queue,
        "--hostname", f"{queue}-{_machine_word()}@%h",
        "--concurrency", str(processes),
        "--loglevel", "WARNING",
        "--without-gossip", "--without-mingle",
    )  # fmt: skip


def low_priority(role: str, size: Sizes) -> dict[str, str]:
    """Return the variable that lowers the priority: slightly for short jobs, else fully."""
    nice = {"worker": min(SHORT_NICE, size.learn_nice)}.get(role, size.learn_nice)
    return {"WORKER_NICE": str(nice)}


def sweep_command() -> tuple[str, ...]:
    """Return the command of the sweep, which handles abandoned jobs and files."""
    return (sys.executable, "-m", "tasks.sweep")


def scheduler_command() -> tuple[str, ...]:
    """Return the command of Dask's scheduler, which tracks the hosts available to one learning."""
    module = "distributed.cli.dask_scheduler"
    return (sys.executable, "-m", module, "--port", SPREAD_PORT, "--no-dashboard")


def spread_command(scheduler: str) -> tuple[str, ...]:
    """Return the command of a Dask worker, which stores and processes pictures.

    It is one process with one thread for Dask; the kernels share the cores. The engine limits its
    memory: large data is in files without names.
    """
    return (
        sys.executable, "-m", "distributed.cli.dask_worker", scheduler,
        "--nworkers", "1", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard",
        "--local-directory", str(instance_folder() / "spread"),
    )  # fmt: skip


def own_environment(size: Sizes) -> dict[str, str]:
    """Return the variables of all programs unless the caller sets them: settings, threads, stop."""
    threads = str(size.job_threads)
    return {
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "NUMBA_NUM_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "PYTHONUNBUFFERED": "1",
        "REMAP_SIGTERM": "SIGQUIT",  # the worker stops at once; its jobs resume from checkpoints
    }


def main() -> None:
    """Run one of the programs in place of this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--bind", default="127.0.0.1:8000", help="of the web server")
    options = parser.parse_args()
    make_new_files_private()
    instance_folder()
    size = sizes()
    command = {
        "web": web_command(options.bind, size),
        "worker": worker_command("short", size.job_workers),
        "learner": worker_command("long", size.learn_workers),
        "card-learner": worker_command("card", size.card_workers),
        "sweep": sweep_command(),
        "scheduler": scheduler_command(),
        "spread": spread_command(os.environ.get("DASK_SCHEDULER", "")),
    }[options.role]
    if "" in command:
        parser.error("DASK_SCHEDULER: expected the address of the scheduler, tcp://HOST:8786")
    os.chdir(BASE_DIR)
    environment = {**own_environment(size), **os.environ}
    if options.role == "spread":  # it imports the engine from this folder
        environment["PYTHONPATH"] = str(BASE_DIR)
    if options.role in ("worker", "learner", "card-learner", "spread"):
        environment |= low_priority(options.role, size)
    os.execve(command[0], command, environment)  # noqa: S606 - our own programs


def _machine_word() -> str:
    """Return a word that distinguishes machines of the same name, such as containers and copies."""
    return hashlib.sha256(machine_name().encode()).hexdigest()[:6]


def _memory_folder() -> Path:
    """Return the folder of gunicorn's heartbeat files: in memory if possible."""
    shared = Path("/dev/shm")  # noqa: S108
    usable = shared.is_dir() and os.access(shared, os.W_OK)
    return shared if usable else instance_folder()


if __name__ == "__main__":
    main()
