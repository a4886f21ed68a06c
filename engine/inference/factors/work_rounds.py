"""Rounds of equal work for two threads, so that no answer depends on the speed of the machine.

Work is counted in table entries: one entry is the work of elimination on one entry of a table,
about 10 ns. Each thread works on results of its own. When both have done the work of a round, their
results are merged in a fixed order, and both continue from the best one. The threads share nothing
else, so that the results after a round depend on the model and the random numbers alone.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from threading import Condition

from engine.inference.factors.map_incumbent import Incumbent

MIN_ROUND = 5e6  # entries, about 50 ms: waiting for the other thread then costs little


class WorkRounds:
    """Best results of several threads, merged after rounds of equal work.

    The search is over when the results are proved optimal, when ``max_work`` entries were visited
    by each thread, or when `stop` is called.

    Parameters
    ----------
    incumbent : Incumbent, the best results so far, which receives those of all threads.
    n_workers : int
    length : float, entries of a round; at least the work between two calls of `Worker.spend`.
    max_work : float, largest number of entries of each thread; the round that reaches it is the
        last one.
    """

    def __init__(
        self, incumbent: Incumbent, n_workers: int, *, length: float, max_work: float = inf
    ) -> None:
        self.incumbent = incumbent
        self.is_over = False
        self.is_out_of_work = False
        self.workers: Sequence[Worker] = tuple(
            Worker(self, replace(incumbent)) for _ in range(n_workers)
        )
        self._length = length
        self._max_work = max_work
        self._end = min(length, max_work)  # of the present round
        self._n_active = n_workers
        self._n_waiting = 0
        self._is_stopped = False
        self._condition = Condition()

    @property
    def end(self) -> float:
        """Entries after which the present round ends."""
        return self._end

    def wait(self) -> None:
        """Wait until all threads have done the work of the present round."""
        with self._condition:
            end = self._end
            self._n_waiting += 1
            if self._n_waiting == self._n_active:
                self._merge()
            while self._end == end and not self.is_over:
                self._condition.wait()

    def leave(self) -> None:
        """End the work of one thread; its results are merged at the end of the round."""
        with self._condition:
            self._n_active -= 1
            if self._n_waiting == self._n_active:
                self._merge()

    def prove(self, incumbent: Incumbent) -> None:
        """End the search with a proof; what other threads find in this round does not count."""
        with self._condition:
            if not self.is_over:
                self.incumbent.take(incumbent)
                self._finish()

    def stop(self) -> None:
        """End the search now; call `collect` when all threads have ended."""
        with self._condition:
            if not self.is_over:
                self._is_stopped = True
                self._finish()

    def collect(self) -> None:
        """Take the results of a round that `stop` ended."""
        if self._is_stopped:
            for worker in self.workers:
                self.incumbent.take(worker.incumbent)

    def _merge(self) -> None:
        if self.is_over:
            return
        for worker in self.workers:
            self.incumbent.take(worker.incumbent)
        for worker in self.workers:
            worker.incumbent.take(self.incumbent)
        self.is_out_of_work = self._end >= self._max_work and not self.incumbent.is_proven
        self._end = min(self._end + self._length, max(self._max_work, self._end + 1.0))
        self._n_waiting = 0
        if self.incumbent.is_proven or self.is_out_of_work or self._n_active == 0:
            self._finish()
        self._condition.notify_all()

    def _finish(self) -> None:
        self.is_over = True
        self._condition.notify_all()


class Worker:
    """One thread of the search, with its own results and the count of its work."""

    def __init__(self, rounds: WorkRounds, incumbent: Incumbent) -> None:
        self.incumbent = incumbent
        self.work = 0.0  # entries
        self._rounds = rounds

    def is_over(self) -> bool:
        """Return True if the search is over."""
        return self._rounds.is_over

    def spend(self, entries: float) -> None:
        """Count work; wait for the other threads where it ends the round."""
        self.work += entries
        while self.work >= self._rounds.end and not self._rounds.is_over:
            self._rounds.wait()
