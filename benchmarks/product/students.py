"""A year of a questionnaire: 2,500 students over real HTTP, two reminders, a cohort, a placement.

Half are on phones, 5 % answer twice, 3 % stop half-way, names are of twenty languages; ten times
something of the product gets SIGKILL on the way. Then the same year is read from Qualtrics' file of
it, and what is learned from either is compared. Prints answers a minute, the 95th percentile of all
answers of the server, and what was lost (nothing).

    python -m benchmarks product students [--students 2500] [--students-a-minute 200] [--kills 10]

``--students-a-minute 200`` paces who begins, 0 measures how many there can be. Every step prints
one line of JSON; ``--instance DIR`` keeps the installation and what was measured, and the same
command once more goes on with the first step that is not done. ``--steps open,1`` does these only.
"""

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.live.crowd import Student
from tests.live.product import Product, new_product, seconds_of
from tests.live.student_year import (
    Killer,
    answer,
    crowd_of,
    lost_answers,
    make_placement,
    open_questionnaire,
    remind,
    same_year_by_file,
)

WAVES = 6
REMINDED_BEFORE = (3, 5)
STEPS = ("open", *(str(number) for number in range(1, WAVES + 1)), "place", "file")
CLOSE = 1e-3  # of the scores' standard deviation; two solves to a gap of 1e-9 differ by less
PROGRESS_SECONDS = 15.0
PLACING_SECONDS = 900.0


def main() -> None:
    """Run the steps that are not done, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=2_500)
    parser.add_argument("--students-a-minute", type=float, default=200.0, help="0: no pause")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--every", type=float, default=15.0, help="seconds between two kills")
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--instance", type=Path, help="folder of an installation that is kept")
    parser.add_argument("--steps", default=",".join(STEPS), help="with commas, in this order")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = args.instance or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        product = new_product(place)
        product.start()
        try:
            done = _read(place / "steps.json", {})
            for step in args.steps.split(","):
                if step not in done:
                    done[step] = _step(product, args, step)
                    _write(place / "steps.json", done)
            print(json.dumps(_whole(done)), flush=True)
        finally:
            product.stop()


def _step(product: Product, args: argparse.Namespace, step: str) -> dict[str, Any]:
    kept = product.instance / "crowd.json"
    began = time.monotonic()
    if step == "open":
        students, found = _open(product, args)
    else:
        students = [_student(row) for row in _read(kept, [])]
        if step.isdecimal():
            found = _wave(product, args, students, int(step))
        else:
            found = (_place if step == "place" else _by_file)(product, students)
    _write(kept, [asdict(one) for one in students])
    found = {"step": step, "step_seconds": round(time.monotonic() - began, 1)} | found
    print(json.dumps({k: v for k, v in found.items() if k != "milliseconds"}), flush=True)
    return found


def _read(path: Path, otherwise: Any) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else otherwise


def _write(path: Path, data: Any) -> None:
    """Replace a file as a whole: who is killed meanwhile goes on from the one before."""
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(data), encoding="utf-8")
    draft.replace(path)


def _student(row: dict[str, Any]) -> Student:
    return Student(**{**row, "kept": {int(number): said for number, said in row["kept"].items()}})


def _open(product: Product, args: argparse.Namespace) -> tuple[list[Student], dict[str, Any]]:
    code, links = open_questionnaire(product, invited=args.students // 2)
    students = crowd_of(product, args.students, code=code, links=links, seed=args.seed)
    return students, {"invited": len(links), "students": len(students)}


def _wave(
    product: Product, args: argparse.Namespace, students: list[Student], number: int
) -> dict[str, Any]:
    before = time.monotonic()
    reminded = remind(product) if number in REMINDED_BEFORE else 0
    seconds_reminding = time.monotonic() - before
    wave = students[number - 1 :: WAVES]
    times = args.kills * number // WAVES - args.kills * (number - 1) // WAVES
    killer = Killer(product, times=times, every=args.every, seed=args.seed + number)
    assert product.process is not None
    server, crowd = seconds_of(product.process.pid), time.process_time()
    killer.start()
    seen = answer(
        product,
        wave,
        at_once=args.at_once,
        students_a_minute=args.students_a_minute or None,
        on_answer=_progress(f"wave {number}"),
    )
    killer.stop()
    assert not seen.failures, seen.failures[:3]
    return {
        "reminded": reminded,
        "seconds_reminding": round(seconds_reminding, 1),
        "students": len(wave),
        "answers": seen.n_answers,
        "seconds": round(seen.seconds, 1),
        "students_a_minute": round(60 * len(wave) / seen.seconds),
        "answers_a_minute": round(60 * seen.n_answers / seen.seconds),
        "requests": len(seen.times),
        "median_ms": round(1e3 * seen.percentile(0.5)),
        "p95_ms": round(1e3 * seen.percentile(0.95)),
        "server_ms_a_request": round(
            1e3 * (seconds_of(product.process.pid) - server) / max(1, len(seen.times)), 1
        ),
        "crowd_ms_a_request": round(
            1e3 * (time.process_time() - crowd) / max(1, len(seen.times)), 1
        ),
        "broken": seen.n_broken,
        "killed": killer.killed,
        "load": round(os.getloadavg()[0], 1),
        "milliseconds": dict(Counter(round(1e3 * second) for second in seen.times)),
    }


def _progress(what: str) -> Callable[[int], None]:
    """Return a function that prints a count now and then."""
    began = time.monotonic()
    due = [began + PROGRESS_SECONDS]

    def say(count: int) -> None:
        now = time.monotonic()
        if now >= due[0]:
            due[0] = now + PROGRESS_SECONDS
            print(f"{what}: {count:,} answers after {now - began:.0f} s", flush=True)

    return say


def _place(product: Product, students: list[Student]) -> dict[str, Any]:
    lost = lost_answers(product, students)
    count, finished = make_placement(product, seconds=PLACING_SECONDS), _finished(students)
    if lost or count != finished:
        raise SystemExit(f"lost: {lost[:3]}; a cohort of {count} of {finished} who finished")
    return {"lost": len(lost), "cohort": count, "finished": finished}


def _by_file(product: Product, students: list[Student]) -> dict[str, Any]:
    count, seconds, apart, spread = same_year_by_file(product)
    if count != _finished(students) or apart > CLOSE * spread:
        raise SystemExit(f"the file gives another year: {count} students, {apart} of {spread}")
    return {"by_file": count, "import_seconds": round(seconds, 1), "scores_differ_by": apart,
            "spread_of_scores": round(spread, 3)}  # fmt: skip


def _finished(students: list[Student]) -> int:
    return len({one.identifier for one in students if one.is_finished})


def _whole(done: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what all steps together say: percentiles over every request, and the kills."""
    times: Counter[int] = Counter()
    for step in done.values():
        times.update({int(ms): n for ms, n in step.get("milliseconds", {}).items()})
    ordered = sorted(times.elements())
    high = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))] if ordered else None
    return {
        "seconds": round(sum(step["step_seconds"] for step in done.values())),
        "answers": sum(step.get("answers", 0) for step in done.values()),
        "requests": len(ordered),
        "p95_ms": high,
        "killed": sum(len(step.get("killed", ())) for step in done.values()),
        "lost": done.get("place", {}).get("lost"),
        "scores_differ_by": done.get("file", {}).get("scores_differ_by"),
    }


if __name__ == "__main__":
    main()
