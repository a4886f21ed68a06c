"""Swaps at random that may lose a little, less and less: a first placement in large rooms.

In rooms of five and more every single swap changes many pairs a little, so that exchanges which
must gain end early, far below the best.

References
----------
Kirkpatrick, Gelatt and Vecchi 1983 (simulated annealing).
"""

import numpy as np

from engine.core.progress import StopCallback
from engine.kernels.room_exchange import swap_at_random
from engine.rooms.exchange import NEVER, Exchange

LARGE = 4  # people; in rooms up to so many, what exchanges leave is soon found by groups
MOST_ATOMS = 1_000
SWAPS, MOST_SWAPS = 30_000, 6_000_000  # tried at first: for each atom, and in all
SLOWER = 4  # times as many at each later try
AT_ONCE = 50_000  # tried between two looks at the clock
HOT, COLD = 0.5, 0.02  # of the scores' deviation: what swaps may lose on average


def anneal(
    exchange: Exchange, rng: np.random.Generator, is_over: StopCallback, tries: int = 0
) -> bool:
    """Improve a placement by random swaps, where rooms are large; return whether it is better.

    Parameters
    ----------
    exchange : Exchange, with everybody placed as well as may be.
    rng : Generator
    is_over : asked after every 50,000 swaps.
    tries : earlier ones; each cools four times slower than the one before.
    """
    problem, n = exchange.problem, exchange.problem.n_atoms
    if problem.capacity.max(initial=0) <= LARGE or not 1 < n <= MOST_ATOMS:
        return False
    usual = problem.scores[problem.scores > NEVER]
    deviation = float(usual.std())
    before = exchange.value
    best_of, value = exchange.room_of.copy(), before
    rounds = -(-min(SWAPS * n, MOST_SWAPS) * SLOWER**tries // AT_ONCE)
    for warmth in deviation * np.geomspace(HOT, COLD, rounds):
        first, second = rng.integers(n, size=(2, AT_ONCE))
        toll = warmth * rng.exponential(size=AT_ONCE)
        here, found = exchange.value, exchange.room_of.copy()
        gained = swap_at_random(first, second, toll, found, *exchange.swap_tables())
        if here + gained > value:
            best_of, value = found, here + gained
        if is_over():
            break
    exchange.start(best_of)
    return value > before
