"""Two threads that merge their results after equal work, whichever of them is faster."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from engine.graphs.factor_graph import Factor, FactorGraph, to_pairwise
from engine.inference.factors.map_incumbent import Incumbent
from engine.inference.factors.work_rounds import Worker, WorkRounds


def make_incumbent() -> Incumbent:
    return Incumbent(to_pairwise(FactorGraph(np.array([2]), (Factor((0,), np.zeros(2)),))))


def offer(worker: Worker, value: float) -> None:
    worker.incumbent.offer("search", np.array([0]), value)


@pytest.mark.parametrize("slow", [0, 1])
def test_what_a_thread_knows_depends_on_the_work_alone(slow: int) -> None:
    rounds = WorkRounds(make_incumbent(), 2, length=10.0, max_work=50.0)
    seen: list[list[float]] = [[], []]

    def work(k: int) -> None:
        worker = rounds.workers[k]
        while not worker.is_over():
            if k == slow:
                time.sleep(0.002)
            offer(worker, worker.work + k)
            worker.spend(5.0)
            seen[k].append(worker.incumbent.value)
        rounds.leave()

    with ThreadPoolExecutor(2) as pool:
        for thread in [pool.submit(work, k) for k in range(2)]:
            thread.result()
    assert rounds.is_out_of_work
    assert [worker.work for worker in rounds.workers] == [50.0, 50.0]
    # A thread has its own results within a round, and the best of both after it.
    assert seen[0] == [0.0, 6.0, 10.0, 16.0, 20.0, 26.0, 30.0, 36.0, 40.0, 46.0]
    assert seen[1] == [1.0, 6.0, 11.0, 16.0, 21.0, 26.0, 31.0, 36.0, 41.0, 46.0]
    assert rounds.incumbent.value == 46.0


def test_a_thread_goes_on_alone_when_the_other_has_left() -> None:
    rounds = WorkRounds(make_incumbent(), 2, length=10.0, max_work=30.0)
    first, second = rounds.workers
    offer(second, 7.0)
    rounds.leave()
    assert rounds.incumbent.value == -np.inf
    first.spend(25.0)
    assert first.incumbent.value == rounds.incumbent.value == 7.0
    assert not first.is_over()
    first.spend(5.0)
    assert first.is_over()


def test_a_proof_ends_the_search_without_the_results_of_its_round() -> None:
    rounds = WorkRounds(make_incumbent(), 2, length=10.0)
    first, second = rounds.workers
    offer(second, 9.0)
    offer(first, 5.0)
    first.incumbent.tighten(5.0)
    rounds.prove(first.incumbent)
    rounds.collect()
    assert second.is_over()
    assert (rounds.incumbent.value, rounds.incumbent.bound) == (5.0, 5.0)


def test_a_stop_keeps_the_results_found_so_far() -> None:
    rounds = WorkRounds(make_incumbent(), 2, length=10.0)
    for k, worker in enumerate(rounds.workers):
        offer(worker, float(k))
    rounds.stop()
    assert all(worker.is_over() for worker in rounds.workers)
    rounds.workers[0].spend(100.0)  # returns at once
    rounds.collect()
    assert rounds.incumbent.value == 1.0
    assert not rounds.is_out_of_work
