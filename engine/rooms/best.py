"""Best placement so far, and the bound on all placements."""

import math
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import IntArray
from engine.core.gap import relative_gap
from engine.rooms.exchange import Exchange

SUM_ROUNDING = 1e-12  # of a placement's value, as a share of it: its groups are summed in any order


@dataclass(slots=True)
class Best:
    """Best complete placement so far, and the bound: values of the problem, penalties included.

    A placement that leaves out fewer people is always better: people with needs are compared first,
    then all. Then one with fewer ``levels`` is better: people in extra beds first, then the sum of
    the positions of all people in the order of the rooms. Gaps are reported without penalties:
    ``outside`` is the cost of people without a room (at most 0), ``tolls`` the price of the levels
    (at least 0); ``offset`` is added to the value of every placement, less the price of all moves.
    """

    room_of: IntArray
    value: float
    n_outside: tuple[int, int]
    levels: tuple[int, int] = (0, 0)
    tolls: float = 0.0
    bound: float = np.inf
    outside: float = 0.0
    offset: float = 0.0

    @staticmethod
    def of(exchange: Exchange, offset: float) -> "Best":
        """Return the placement of an exchange as the best so far."""
        return Best(
            exchange.room_of.copy(),
            exchange.value,
            exchange.n_outside,
            exchange.levels,
            exchange.tolls,
            outside=exchange.value_outside,
            offset=offset,
        )

    def take(self, exchange: Exchange) -> bool:
        """Keep a placement if it is better; return whether it is.

        The value is summed again from the scores: repeated updates accumulate rounding errors.
        """
        if not self._is_better(exchange):
            return False
        exchange.start(exchange.room_of)
        if not (exchange.is_allowed() and self._is_better(exchange)):
            return False
        self.room_of, self.value = exchange.room_of.copy(), exchange.value
        self.n_outside, self.outside = exchange.n_outside, exchange.value_outside
        self.levels, self.tolls = exchange.levels, exchange.tolls
        return True

    def _is_better(self, exchange: Exchange) -> bool:
        theirs = exchange.n_outside, exchange.levels, -exchange.value
        return theirs < (self.n_outside, self.levels, -self.value)

    def is_better_than(self, other: "Best") -> bool:
        """Return True if this placement comes before another, as documented above."""
        mine = self.n_outside, self.levels, -self.value
        return mine < (other.n_outside, other.levels, -other.value)

    def is_as_good_as(self, other: "Best") -> bool:
        """Return True if the two differ by no more than the rounding of their sums."""
        return (self.n_outside, self.levels) == (other.n_outside, other.levels) and math.isclose(
            self.value, other.value, rel_tol=SUM_ROUNDING, abs_tol=SUM_ROUNDING
        )

    @property
    def gap(self) -> float:
        """Relative gap between the value and the bound."""
        return self.gap_to(self.value)

    def gap_to(self, value: float) -> float:
        """Return the relative gap between the bound and a value, both as reported."""
        return relative_gap(self.as_told(self.bound), self.as_told(value))

    def as_told(self, value: float) -> float:
        """Return a value without the cost of people left out and of levels, with moves' price."""
        return value - self.outside + self.tolls + self.offset
