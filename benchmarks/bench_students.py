"""A year of a questionnaire: 2,500 students over real HTTP, two reminders, a cohort, a placement.

Half are on phones, 5 % answer twice, 3 % stop half-way, names are of twenty languages; ten times
something of the product gets SIGKILL on the way. Prints answers a minute, the 95th percentile of
all answers of the server, and what was lost (nothing).

    python -m benchmarks.bench_students [--students 2500] [--a-minute 0] [--kills 10] [--at-once 16]

``--a-minute 200`` paces the answers: the latency of that load; 0 measures how many there can be.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.live.product import new_product
from tests.live.student_year import (
    Killer,
    answer,
    crowd_of,
    lost_answers,
    make_placement,
    open_questionnaire,
    remind,
)


def main() -> None:
    """Run the year and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=2_500)
    parser.add_argument("--a-minute", type=float, default=0.0, help="0: as many as there can be")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--every", type=float, default=15.0, help="seconds between two kills")
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        product = new_product(Path(folder))
        product.start()
        try:
            _year(product, args)
        finally:
            product.stop()


def _year(product, args) -> None:
    began = time.monotonic()
    code, links = open_questionnaire(product, invited=args.students // 2)
    print(f"invited {len(links):,} in {time.monotonic() - began:.0f} s")
    students = crowd_of(product, args.students, code=code, links=links, seed=args.seed)
    killer = Killer(product, times=args.kills, every=args.every, seed=args.seed)
    killer.start()
    waves = [students[k::3] for k in range(3)]
    pace = args.a_minute or None
    for number, wave in enumerate(waves, start=1):
        seen = answer(product, wave, at_once=args.at_once, a_minute=pace)
        assert not seen.failures, seen.failures[:3]
        rate, middle, high = 60 * seen.n_answers / seen.seconds, *map(seen.percentile, (0.5, 0.95))
        print(f"wave {number}: {len(wave):,} students, {seen.n_answers:,} answers", end=" ")
        print(f"in {seen.seconds:.0f} s = {rate:,.0f} a minute; of {len(seen.times):,}", end=" ")
        print(f"requests median {1e3 * middle:.0f} ms, p95 {1e3 * high:.0f} ms;", end=" ")
        print(f"{seen.n_broken} connections broke; load {os.getloadavg()[0]:.1f}", flush=True)
        if number < 3:
            print(f"reminded {remind(product, number):,}", flush=True)
    killer.stop()
    print(f"killed {len(killer.killed)}: {', '.join(killer.killed) or 'nothing'}")
    lost = lost_answers(product, students)
    print(f"lost: {len(lost)} {lost[:3] or ''}")
    began = time.monotonic()
    count = make_placement(product, seconds=900)
    finished = len({one.identifier for one in students if one.is_finished})
    print(
        f"cohort of {count:,} ({finished:,} finished), placed in {time.monotonic() - began:.0f} s"
    )
    if lost or count != finished:
        raise SystemExit("something was lost")


if __name__ == "__main__":
    main()
