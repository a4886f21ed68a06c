"""Jobs that count: slow, checkpointed, and they leave a line for every start and every end."""

import math
import time
from pathlib import Path

import numpy as np

from engine import InvalidProblemError, Progress
from webapp.charts import ConvergenceWords
from webapp.files import store
from webapp.files.storage import array_path, keep_bytes
from webapp.jobs.context import JobContext
from webapp.jobs.registry import Outcome, Queue, job_kind


@job_kind(
    "counting.sum",
    verb="Count",
    target_gap=1e-4,
    words=ConvergenceWords(axis="Sum (no unit)"),
)
def sum_slowly(context: JobContext) -> Outcome:
    """Add random numbers, one a step; goes on from its checkpoint with the same stream."""
    steps = int(context.parameters["steps"])
    pause = float(context.parameters["seconds_a_step"])
    _write(context, "start")
    draws = context.rng.random(steps)
    state = context.checkpoint.load() or {"step": np.array(0), "total": np.array(0.0)}
    step, total = int(state["step"]), float(state["total"])
    while step < steps:
        if context.should_stop():
            break
        time.sleep(pause)
        total += draws[step]
        step += 1
        context.checkpoint.save({"step": np.array(step), "total": np.array(total)})
        gap = math.exp(-9.5 * step / steps)
        context.on_progress(
            Progress(
                sentence="Narrowing the gap",
                fraction=step / steps,
                iteration=step,
                seconds_left=(steps - step) * pause,
                objective=-19850 + 400 * gap,
                lower_bound=-19850 - 900 * gap,
                relative_gap=gap,
            )
        )
    context.raise_if_stopped()
    _write(context, "end")
    return {"total": total, "sentence": f"Counted {steps} steps"}


@job_kind("counting.long", verb="Count long", queue=Queue.LONG)
def sum_for_long(context: JobContext) -> Outcome:
    """Count, as learning does, where short work does not wait for it."""
    return sum_slowly(context)


@job_kind("counting.deaf", verb="Sleep")
def never_listen(context: JobContext) -> Outcome:
    """Sleep without ever asking whether to stop, as compiled code does."""
    _write(context, "start")
    time.sleep(float(context.parameters["seconds"]))
    _write(context, "end")
    return {}


@job_kind("counting.fail", verb="Fail")
def fail(context: JobContext) -> Outcome:
    """Fail in the way that the parameters ask for."""
    if context.parameters["how"] == "input":
        raise InvalidProblemError("Row 241: S-1187 appears twice, first in row 88.")
    raise RuntimeError("a secret of the inside")


@job_kind("counting.save", verb="Save")
def save_rows(context: JobContext) -> Outcome:
    """Write a row in the transaction of success; fails there when the parameters say so."""
    from webapp.accounts.models import Organisation

    def save() -> dict[str, str]:
        Organisation.objects.create(name=f"made by {context.job.pk}")
        if context.parameters.get("break"):
            raise RuntimeError("the last write failed")
        return {"sentence": "Saved"}

    return save


@job_kind("counting.file", verb="Write")
def write_file(context: JobContext) -> Outcome:
    """Write a file into the store, once somebody says so, and read it as another host would."""
    while not Path(context.parameters["after"]).exists():
        context.raise_if_stopped()
        time.sleep(0.05)
    path = array_path(context.job.organisation_id, "arrays", context.job.pk)
    content = context.rng.bytes(100_000)
    keep_bytes(path, content)
    if not context.parameters.get("is_home"):  # else this path is the store, not a copy
        path.unlink()
    whole = store.get(path, fresh=True).read_bytes() == content
    return {"sentence": "written whole" if whole else "damaged"}


def _write(context: JobContext, word: str) -> None:
    path = context.parameters.get("record")
    if path:
        with Path(path).open("a", encoding="ascii") as file:
            file.write(f"{word} {context.job.pk} {context.job.attempt}\n")
