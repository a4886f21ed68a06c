"""A year of a questionnaire: 2,500 students over real HTTP, two reminders, a cohort, a placement.

Half are on phones, 5 % answer twice, 3 % stop half-way, names are of twenty languages; ten times
something of the product gets SIGKILL on the way. Then the same year is read from Qualtrics' file of
it, and what is learned from either is compared. Prints answers a minute, the 95th percentile of all
answers of the server, and what was lost (nothing).

    python -m benchmarks.bench_students [--students 2500] [--a-minute 0] [--kills 10] [--at-once 16]

``--a-minute 200`` paces the answers: the latency of that load; 0 measures how many there can be.
``--instance DIR --steps open,1`` does a part of it and keeps the installation for the next part.
"""

import argparse
import json
import os
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from tests.live.crowd import Student
from tests.live.product import Product, new_product
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
CLOSE = 0.05  # of the scores' standard deviation: two solves to a gap of 1e-6 differ that much


def main() -> None:
    """Run the steps and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=2_500)
    parser.add_argument("--a-minute", type=float, default=0.0, help="0: as many as there can be")
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
            for step in args.steps.split(","):
                _step(product, args, step)
        finally:
            product.stop()


def _step(product: Product, args: argparse.Namespace, step: str) -> None:
    kept = product.instance / "crowd.json"
    if step == "open":
        students = _open(product, args)
    else:
        students = [Student(**data) for data in _read(kept)]
    if step.isdecimal():
        _wave(product, args, students, int(step))
    elif step == "place":
        _place(product, students)
    elif step == "file":
        _by_file(product, students)
    kept.write_text(json.dumps([asdict(one) for one in students]), encoding="utf-8")


def _read(kept: Path) -> list[dict]:
    rows = json.loads(kept.read_text(encoding="utf-8"))
    for row in rows:
        row["kept"] = {int(number): said for number, said in row["kept"].items()}
    return rows


def _open(product: Product, args: argparse.Namespace) -> list[Student]:
    began = time.monotonic()
    code, links = open_questionnaire(product, invited=args.students // 2)
    print(f"invited {len(links):,} in {time.monotonic() - began:.0f} s", flush=True)
    return crowd_of(product, args.students, code=code, links=links, seed=args.seed)


def _wave(product: Product, args: argparse.Namespace, students: list[Student], number: int) -> None:
    if number in REMINDED_BEFORE:
        before = time.monotonic()
        count = remind(product)
        print(f"reminded {count:,} in {time.monotonic() - before:.0f} s", flush=True)
    wave = students[number - 1 :: WAVES]
    times = args.kills * number // WAVES - args.kills * (number - 1) // WAVES
    killer = Killer(product, times=times, every=args.every, seed=args.seed + number)
    killer.start()
    seen = answer(product, wave, at_once=args.at_once, a_minute=args.a_minute or None)
    killer.stop()
    assert not seen.failures, seen.failures[:3]
    rate, middle, high = 60 * seen.n_answers / seen.seconds, *map(seen.percentile, (0.5, 0.95))
    print(f"wave {number}: {len(wave):,} students, {seen.n_answers:,} answers", end=" ")
    print(f"in {seen.seconds:.0f} s = {rate:,.0f} a minute; of {len(seen.times):,}", end=" ")
    print(f"requests median {1e3 * middle:.0f} ms, p95 {1e3 * high:.0f} ms;", end=" ")
    print(f"{seen.n_broken} connections broke; load {os.getloadavg()[0]:.1f}")
    print(f"killed {len(killer.killed)}: {', '.join(killer.killed) or 'nothing'}", flush=True)


def _place(product: Product, students: list[Student]) -> None:
    lost = lost_answers(product, students)
    print(f"lost: {len(lost)} {lost[:3] or ''}", flush=True)
    began = time.monotonic()
    count, finished = make_placement(product, seconds=500), _finished(students)
    print(
        f"cohort of {count:,} ({finished:,} finished), placed in {time.monotonic() - began:.0f} s",
        flush=True,
    )
    if lost or count != finished:
        raise SystemExit("something was lost")


def _by_file(product: Product, students: list[Student]) -> None:
    count, seconds, apart, spread = same_year_by_file(product)
    print(f"by file: {count:,} students, read and imported in {seconds:.1f} s;", end=" ")
    print(f"scores of pairs differ by {apart:.4f} at most, their spread is {spread:.3f}")
    if count != _finished(students) or apart > CLOSE * spread:
        raise SystemExit("the file gives another year")


def _finished(students: list[Student]) -> int:
    return len({one.identifier for one in students if one.is_finished})


if __name__ == "__main__":
    main()
