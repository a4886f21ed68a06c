"""Exact inference by variable elimination within a memory limit."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InfeasibleError, InvalidProblemError, StoppedError
from engine.core.options import check_callables, check_whole
from engine.core.progress import StopCallback, WorkCallback, ignore_work, never_stop
from engine.graphs.elimination_order import EliminationOrder, choose_order
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.kernels.elimination import max_out, share_out, sum_out

MEMORY_LIMIT = 1 << 30  # maximum number of bytes of the tables alive at once
ENTRY = 8  # bytes of a table entry
MOST_STATES = 256  # states of a variable whose best state fits in a byte
# Configurations of the last variables whose positions are listed once (see kernels.elimination):
# the lists of a few tables stay in the first-level cache.
COLUMNS = 1024
PART = 1 << 22  # entries visited between two calls of should_stop: some tens of milliseconds
FACTOR_WORK = 4_000  # work of ordering a factor, or of a step besides its entries, in entries

Reduction = Callable[[FloatArray, IntArray, IntArray, IntArray, int, FloatArray], None]
Messages = dict[int, FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class _Bucket:
    """One step, which combines the tables of ``variable`` into a message over ``scope``.

    ``sources`` are the earlier steps whose messages this step receives.
    """

    variable: int
    scope: tuple[int, ...]
    factors: tuple[Factor, ...]
    sources: tuple[int, ...]
    size: int
    arriving: int  # entries of all tables that the step combines


@dataclass(frozen=True, slots=True)
class _Watch:
    """Callbacks of a pass."""

    should_stop: StopCallback
    on_work: WorkCallback = ignore_work

    def visit(self, entries: int) -> None:
        """Count work that follows; raise StoppedError if the caller requests a stop."""
        self.on_work(entries)
        if self.should_stop():
            raise StoppedError("Exact inference was stopped before it had an answer.")


class Elimination:
    """Sums and maxima of one model by variable elimination.

    Parameters
    ----------
    graph : FactorGraph
    memory_limit : int
        Most bytes of the tables alive at once.

    Raises
    ------
    InvalidProblemError
        If the tables alive at once would take more than ``memory_limit`` bytes.

    Notes
    -----
    The time is that of visiting ``cost`` entries once for log Z and configurations, at about 10 ns
    each, and up to three times for marginals. For a configuration a byte stores the best state of
    each entry of a message. If these bytes do not fit, and for marginals, messages are read back in
    reverse order; if not all messages fit, only those alive at some steps are kept and the others
    computed again.

    References
    ----------
    Dechter 1999 (bucket elimination); the marginals are its reverse pass (Shafer and Shenoy 1990);
    Griewank 1992 (recomputing from checkpoints).

    Examples
    --------
    >>> pair = Factor((0, 1), np.log([[1.0, 2.0], [3.0, 4.0]]))
    >>> solver = Elimination(FactorGraph(np.array([2, 2]), (pair,)))
    >>> float(round(np.exp(solver.log_partition()), 9)), solver.best()[0].tolist()
    (10.0, [1, 1])
    """

    def __init__(self, graph: FactorGraph, *, memory_limit: int = MEMORY_LIMIT) -> None:
        check_whole("memory_limit", memory_limit, at_least=1)
        self._graph = graph
        self._limit = memory_limit
        self._plan = choose_order(
            graph.cardinalities, [f.variables for f in graph.factors], memory_limit // ENTRY
        )
        if not self._plan.is_complete:
            raise self._too_wide(ENTRY * self._plan.largest, "at least ")
        self._buckets = _fill_buckets(graph, self._plan)
        self._roots = [k for k, bucket in enumerate(self._buckets) if not bucket.scope]
        self._constant = float(sum(f.table for f in graph.factors if not f.variables))
        # Entries alive before each step, and after the last step.
        received = [sum(self._buckets[s].size for s in b.sources) for b in self._buckets]
        sent = [bucket.size for bucket in self._buckets]
        self._alive = np.concatenate([[0], np.cumsum(np.subtract(sent, received))])
        joint = [bucket.size + bucket.arriving for bucket in self._buckets]
        self._check_memory(int((self._alive[:-1] + joint).max(initial=0)))

    @property
    def width(self) -> int:
        """Largest number of variables with two states or more in a message."""
        return self._plan.width

    @property
    def cost(self) -> int:
        """Number of table entries that one pass visits."""
        cards = self._graph.cardinalities
        return sum(bucket.size * int(cards[bucket.variable]) for bucket in self._buckets)

    @property
    def work(self) -> float:
        """Work of a pass: its table entries, and the work of its steps besides."""
        return self.cost + FACTOR_WORK * len(self._buckets)

    def log_partition(self, *, should_stop: StopCallback = never_stop) -> float:
        """Return log Z in nats (-inf if every configuration is impossible).

        Raises
        ------
        StoppedError
            If ``should_stop``, called a few times a second, returns True; likewise below.
        """
        check_callables(should_stop=should_stop)
        messages: Messages = {}
        self._send(0, len(self._buckets), messages, sum_out, _Watch(should_stop), keeping=False)
        return self._value(messages)

    def best(
        self, *, should_stop: StopCallback = never_stop, on_work: WorkCallback = ignore_work
    ) -> tuple[IntArray, float]:
        """Return a configuration of largest score, and its score (nats).

        Parameters
        ----------
        should_stop : callable returning bool, optional
        on_work : callable, optional, takes the table entries that are visited next.

        Raises
        ------
        InfeasibleError
            If every configuration has probability zero.
        InvalidProblemError
            If reading back would exceed the memory limit.
        """
        check_callables(should_stop=should_stop, on_work=on_work)
        watch = _Watch(should_stop, on_work)
        if self._keeps_choices():
            return self._best_in_one_pass(watch)
        labels = np.zeros(self._graph.n_variables, dtype=np.int64)
        for k, messages in self._read_back(_maximise, watch):
            bucket = self._buckets[k]
            values = np.zeros(int(self._graph.cardinalities[bucket.variable]))
            for scope, table in self._tables(bucket, messages):
                chosen = (slice(None) if v == bucket.variable else labels[v] for v in scope)
                values += table.reshape(self._graph.cardinalities[list(scope)])[tuple(chosen)]
            labels[bucket.variable] = int(values.argmax())
        return labels, self._graph.score(labels)

    def _keeps_choices(self) -> bool:
        """True if a byte for each entry of all messages fits beside the messages alive."""
        widest = int(self._alive.max()) + 3 * max((b.arriving for b in self._buckets), default=0)
        fits = self._plan.total + ENTRY * widest <= self._limit
        return fits and int(self._graph.cardinalities.max()) <= MOST_STATES

    def _best_in_one_pass(self, watch: _Watch) -> tuple[IntArray, float]:
        """Return a best configuration from the best states stored during one pass."""
        cards, messages = self._graph.cardinalities, Messages()
        sizes = [bucket.size for bucket in self._buckets]
        choices = _Choices(sum(sizes))
        self._send(0, len(self._buckets), messages, choices, watch, keeping=False)
        if self._value(messages) == -np.inf:
            raise _impossible()
        labels = np.zeros(self._graph.n_variables, dtype=np.int64)
        end = sum(sizes)
        for bucket in reversed(self._buckets):
            end -= bucket.size
            place = 0
            for v in bucket.scope:
                place = place * int(cards[v]) + int(labels[v])
            labels[bucket.variable] = choices.states[end + place]
        return labels, self._graph.score(labels)

    def marginals(
        self, *, should_stop: StopCallback = never_stop
    ) -> tuple[float, list[FloatArray]]:
        """Return log Z and the exact marginal of each variable.

        Raises
        ------
        InfeasibleError
            If every configuration has probability zero.
        InvalidProblemError
            If reading back would exceed the memory limit.
        """
        check_callables(should_stop=should_stop)
        # Reverse pass: the derivative of log Z by each message is a marginal of its scope.
        weights: Messages = {k: np.ones(1) for k in self._roots}
        answer: list[FloatArray] = [np.zeros(0)] * self._graph.n_variables
        value = self._constant
        watch = _Watch(should_stop)
        for k, messages in self._read_back(sum_out, watch):
            bucket = self._buckets[k]
            flat, high, low, stride = self._places(bucket, messages)
            shares = np.zeros_like(flat)
            margin = np.zeros(int(self._graph.cardinalities[bucket.variable]))
            weight = weights.pop(k).reshape(len(high), len(low))
            entries = len(margin) * len(low)  # of a row
            for part in _parts_of(len(high), entries):
                watch.visit(entries * (part.stop - part.start))
                share_out(flat, high[part], low, stride, weight[part], shares, margin)
            answer[bucket.variable] = margin / margin.sum()
            if not bucket.scope:
                value += float(messages[k][0])
            at = 0
            for source in bucket.sources:
                weights[source] = shares[at : at + self._buckets[source].size].copy()
                at += self._buckets[source].size
        return value, answer

    def _read_back(self, reduction: Reduction, watch: _Watch) -> Iterator[tuple[int, Messages]]:
        """Yield the steps, last first, each with the messages that its bucket received."""
        segments = self._segments()
        messages: Messages = {}
        kept = []
        for low, high in segments:
            kept.append(dict(messages))
            keeping = high == len(self._buckets)
            self._send(low, high, messages, reduction, watch, keeping=keeping)
        if self._value(messages) == -np.inf:
            raise _impossible()
        for low, high in reversed(segments):
            before = kept.pop()
            if high < len(self._buckets):
                messages = before
                self._send(low, high, messages, reduction, watch, keeping=True)
            for k in range(high - 1, low - 1, -1):
                yield k, messages

    def _segments(self) -> list[tuple[int, int]]:
        """Split the steps into segments that can be read back within the memory limit.

        The entries alive at each start and all messages of one segment are kept at once. With equal
        segments of s entries that is total / s * alive + s, smallest at s = sqrt(total * alive).
        """
        n = len(self._buckets)
        widest = int(self._alive.max())
        whole = self._plan.total + widest + 3 * max((b.arriving for b in self._buckets), default=0)
        if ENTRY * whole <= self._limit:
            return [(0, n)]
        most = math.sqrt(self._plan.total * widest)
        segments, start, inside, largest = [], 0, 0, 0
        for k, bucket in enumerate(self._buckets):
            if k > start and inside + bucket.size > most:
                segments.append((start, k))
                start, inside = k, 0
            inside += bucket.size
            largest = max(largest, inside)
        segments.append((start, n))
        kept = sum(int(self._alive[low]) for low, _ in segments)
        self._check_memory(kept + largest + whole - self._plan.total)
        return segments

    def _send(
        self,
        low: int,
        high: int,
        messages: Messages,
        reduction: Reduction,
        watch: _Watch,
        *,
        keeping: bool,
    ) -> None:
        """Compute messages of steps ``low`` to ``high``; drop received ones unless ``keeping``."""
        for k in range(low, high):
            bucket = self._buckets[k]
            flat, rows, columns, stride = self._places(bucket, messages)
            out = np.empty((len(rows), len(columns)))
            states = int(self._graph.cardinalities[bucket.variable])
            watch.on_work(FACTOR_WORK)
            entries = states * len(columns)  # of a row
            for part in _parts_of(len(rows), entries):
                watch.visit(entries * (part.stop - part.start))
                reduction(flat, rows[part], columns, stride, states, out[part])
            messages[k] = out.ravel()
            if not keeping:
                for source in bucket.sources:
                    del messages[source]

    def _tables(
        self, bucket: _Bucket, messages: Messages
    ) -> list[tuple[tuple[int, ...], FloatArray]]:
        """Return the tables of a step with their variables: messages first, then factors."""
        tables = [(self._buckets[s].scope, messages[s]) for s in bucket.sources]
        return tables + [(factor.variables, factor.table.ravel()) for factor in bucket.factors]

    def _places(
        self, bucket: _Bucket, messages: Messages
    ) -> tuple[FloatArray, IntArray, IntArray, IntArray]:
        """Return the tables of a step as one vector, with the positions of their entries."""
        cards = self._graph.cardinalities
        split, columns = len(bucket.scope), 1
        while split > 0 and columns * int(cards[bucket.scope[split - 1]]) <= COLUMNS:
            split -= 1
            columns *= int(cards[bucket.scope[split]])
        flats, rows, low, stride = [], [], [], []
        start = 0
        for scope, table in self._tables(bucket, messages):
            sizes = [int(cards[v]) for v in scope]
            step = {v: math.prod(sizes[axis + 1 :]) for axis, v in enumerate(scope)}
            rows.append(start + _offsets(bucket.scope[:split], step, cards))
            low.append(_offsets(bucket.scope[split:], step, cards))
            stride.append(step[bucket.variable])
            flats.append(table)
            start += len(table)
        return (
            np.concatenate(flats),
            np.ascontiguousarray(np.stack(rows, axis=1)),
            np.ascontiguousarray(np.stack(low, axis=1)),
            np.array(stride, dtype=np.int64),
        )

    def _value(self, messages: Messages) -> float:
        return self._constant + float(sum(messages[k][0] for k in self._roots))

    def _check_memory(self, entries: int) -> None:
        if ENTRY * entries > self._limit:
            raise self._too_wide(ENTRY * entries)

    def _too_wide(self, needed: int, least: str = "") -> InvalidProblemError:
        return InvalidProblemError(
            "This model is too wide for exact inference: eliminating its variables one by one "
            f"meets tables over {self._plan.width} variables and would take {least}"
            f"{needed / 1e9:.3g} GB of memory; the limit is {self._limit / 1e9:.3g} GB."
        )


class _Choices:
    """Reduction that maximises and stores the best state of each entry of all messages."""

    def __init__(self, size: int) -> None:
        self.states = np.empty(size, dtype=np.uint8)
        self._end = 0

    def __call__(
        self,
        flat: FloatArray,
        high: IntArray,
        low: IntArray,
        stride: IntArray,
        states: int,
        out: FloatArray,
    ) -> None:
        """Write the maximum over the states of the next ``out.size`` entries."""
        start, self._end = self._end, self._end + out.size
        chosen = self.states[start : self._end].reshape(out.shape)
        max_out(flat, high, low, stride, states, out, chosen)


def _maximise(
    flat: FloatArray, high: IntArray, low: IntArray, stride: IntArray, states: int, out: FloatArray
) -> None:
    """Write the maximum over the states; reading back the messages finds the best states."""
    max_out(flat, high, low, stride, states, out, np.empty(out.shape, dtype=np.uint8))


def _impossible() -> InfeasibleError:
    return InfeasibleError("Every configuration of this model has probability zero.")


def _parts_of(rows: int, entries: int) -> Iterator[slice]:
    """Yield slices of the rows of a table, each of about ``PART`` of its entries."""
    step = max(1, PART // entries)
    return (slice(low, min(rows, low + step)) for low in range(0, rows, step))


def _offsets(axes: tuple[int, ...], step: dict[int, int], cards: IntArray) -> IntArray:
    """Return the positions of the configurations of ``axes`` in a table with these strides."""
    total = np.zeros(1, dtype=np.int64)
    for v in axes:
        total = (total[:, None] + step.get(v, 0) * np.arange(cards[v])).ravel()
    return total


def _fill_buckets(graph: FactorGraph, plan: EliminationOrder) -> list[_Bucket]:
    """Assign each factor and message to the step that first eliminates one of its variables."""
    factors: list[list[Factor]] = [[] for _ in plan.order]
    sources: list[list[int]] = [[] for _ in plan.order]
    homes = plan.first_steps([factor.variables for factor in graph.factors])
    for factor, home in zip(graph.factors, homes, strict=True):
        if home >= 0:
            factors[home].append(factor)
    for k, parent in enumerate(plan.parents):
        if parent >= 0:
            sources[parent].append(k)
    buckets = []
    for k, (variable, scope) in enumerate(zip(plan.order, plan.scopes, strict=True)):
        if not factors[k] and not sources[k]:  # no table contains this variable
            factors[k] = [Factor((variable,), np.zeros(int(graph.cardinalities[variable])))]
        arriving = sum(f.table.size for f in factors[k]) + sum(plan.sizes[s] for s in sources[k])
        buckets.append(
            _Bucket(variable, scope, tuple(factors[k]), tuple(sources[k]), plan.sizes[k], arriving)
        )
    return buckets
