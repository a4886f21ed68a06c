"""Options of one pricing search, and the groups found."""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.rooms.clock import SearchClock
from engine.rooms.prices import Prices
from engine.rooms.problem import LARGEST_ROOM

MOST_WORK = 300_000_000  # entries read in one exact search: half a second


@dataclass(slots=True)
class PricingRun:
    """Options of a pricing search, and its results so far over all sizes and views.

    ``least`` is the smallest value of a group above its prices: proportional to its atoms, or the
    same for every group if groups below their prices are requested.
    """

    prices: Prices
    tolerance: float
    clock: SearchClock
    share: FloatArray
    shortfall: float | None = None
    members: list[IntArray] = field(default_factory=list)
    kind: list[IntArray] = field(default_factory=list)
    row: list[IntArray] = field(default_factory=list)
    reduced: list[FloatArray] = field(default_factory=list)
    work: int = 0
    most_work: int = MOST_WORK
    is_whole: bool = True

    @property
    def is_over(self) -> bool:
        """Return True if no proof is possible, or the work limit or the clock is over."""
        return not self.is_whole or self.work_left <= 0 or self.clock.is_over()

    @property
    def work_left(self) -> int:
        """Number of entries that may still be read."""
        return self.most_work - self.work

    def least(self, m: int) -> float:
        """Return the smallest value above prices of groups of m atoms."""
        return self.tolerance * m if self.shortfall is None else -self.shortfall

    def put(self, members: IntArray, kind: IntArray, row: IntArray, reduced: FloatArray) -> None:
        """Add groups and raise the shares of their atoms."""
        for k in range(members.shape[1]):
            np.maximum.at(self.share, members[:, k], reduced / members.shape[1])
        out = np.full((len(members), LARGEST_ROOM), -1, dtype=np.int64)
        out[:, : members.shape[1]] = members
        self.members.append(out)
        self.kind.append(kind)
        self.row.append(row)
        self.reduced.append(reduced)

    def found(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return members (g, 8), kinds, rows and reduced values (g,) of all added groups."""
        if not self.members:
            none = np.empty(0, dtype=np.int64)
            return np.empty((0, LARGEST_ROOM), dtype=np.int64), none, none, np.empty(0)
        return (
            np.concatenate(self.members),
            np.concatenate(self.kind),
            np.concatenate(self.row),
            np.concatenate(self.reduced),
        )
