"""What one pricing looks for, and the groups that it has found."""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.progress import StopCallback
from engine.rooms.prices import Prices
from engine.rooms.problem import LARGEST_ROOM

MOST_WORK = 300_000_000  # entries read in one exact search: half a second


@dataclass(slots=True)
class PricingRun:
    """What is searched for, and what was found so far over the sizes and views.

    ``least`` is what a group must be worth above its prices: so much an atom, or, where groups
    below their prices are wanted, as much for every group.
    """

    prices: Prices
    tolerance: float
    width: int
    should_stop: StopCallback
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
        """Whether to give up: too much work, or somebody asked to stop."""
        is_vain = self.is_exact and not self.is_whole
        return is_vain or self.work_left <= 0 or self.should_stop()

    @property
    def work_left(self) -> int:
        """How much more may be read."""
        return self.most_work - self.work

    def least(self, m: int) -> float:
        """Return what groups of m atoms must be worth above their prices."""
        return self.tolerance * m if self.shortfall is None else -self.shortfall

    @property
    def is_exact(self) -> bool:
        """Whether every extension is followed."""
        return self.width >= len(self.share)

    def put(self, members: IntArray, kind: IntArray, row: IntArray, reduced: FloatArray) -> None:
        """Take groups in and raise the shares of their atoms."""
        for k in range(members.shape[1]):
            np.maximum.at(self.share, members[:, k], reduced / members.shape[1])
        out = np.full((len(members), LARGEST_ROOM), -1, dtype=np.int64)
        out[:, : members.shape[1]] = members
        self.members.append(out)
        self.kind.append(kind)
        self.row.append(row)
        self.reduced.append(reduced)

    def found(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return members (g, 8), kinds, rows and reduced values (g,) of all groups taken in."""
        if not self.members:
            none = np.empty(0, dtype=np.int64)
            return np.empty((0, LARGEST_ROOM), dtype=np.int64), none, none, np.empty(0)
        return (
            np.concatenate(self.members),
            np.concatenate(self.kind),
            np.concatenate(self.row),
            np.concatenate(self.reduced),
        )
