"""Loop of the hunts: solve one seeded problem after the other until the time is over."""

import argparse
import time
import traceback
from collections.abc import Callable


def hunt(description: str, faults_of_seed: Callable[[int], list[str]], what: str) -> None:
    """Try one seed after the other, print every fault, and exit with 1 if there was any.

    Parameters
    ----------
    description : str, of the command's help.
    faults_of_seed : callable
        Makes the problem of a seed and returns a sentence for each fault; an exception is one too.
    what : str, name of the problems, in the plural.
    """
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--count", type=int, help="number of problems, instead of a time")
    args = parser.parse_args()
    started, seed, n_wrong = time.monotonic(), args.first_seed, 0
    last = float("inf") if args.count is None else args.first_seed + args.count
    while seed < last and (args.count or time.monotonic() - started < 60.0 * args.minutes):
        try:
            sentences = faults_of_seed(seed)
        except Exception:  # any error that a hunt does not expect is what it is for
            sentences = [traceback.format_exc(limit=-3)]
        for sentence in sentences:
            n_wrong += 1
            print(f"seed {seed}: {sentence}", flush=True)
        seed += 1
    print(f"{seed - args.first_seed:,} {what}, {n_wrong} exceptions")
    if n_wrong:
        raise SystemExit(1)
