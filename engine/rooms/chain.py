"""Probabilities of sharing a room: frequencies over placements drawn by a Markov chain."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.progress import StopCallback, never_stop
from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.kernels.room_chain import sweep_beds
from engine.rooms.clock import SearchClock
from engine.rooms.exchange import Exchange
from engine.rooms.formulation import Attributes, formulate
from engine.rooms.seating import seat_atoms

CHAINS = 4
BATCH = 20  # sweeps in a batch
FIRST_BATCHES = 16
AGREEMENT = 1.1  # Gelman and Rubin's ratio below which chains have mixed
MAX_BATCHES = 4_000


@dataclass(frozen=True, slots=True, eq=False)
class SharedRooms:
    """Frequencies with which pairs of students share a room in randomly drawn placements.

    Parameters
    ----------
    pairs : ndarray, shape (p, 2)
    probabilities, standard_errors : ndarray, shape (p,)
        The errors are those of the simulation, from the spread between chains and batches.
    sweeps : int, of each chain; a sweep proposes as many exchanges as there are beds.
    has_mixed : bool, whether chains from opposite starts agree; otherwise the errors mean little.
    """

    pairs: IntArray
    probabilities: FloatArray
    standard_errors: FloatArray
    sweeps: int
    has_mixed: bool


class RoomChain:
    """Markov chain of placements with P ~ exp(value), each assignment of beds counted."""

    def __init__(self, exchange: Exchange, room_of: IntArray, rng: np.random.Generator) -> None:
        problem = exchange.problem
        self._rng = rng
        self._scores, self._bonus, self._likes = exchange.tables()
        capacity = exchange.capacity[:-1]
        self._start = np.concatenate(([0], np.cumsum(capacity))).astype(np.int64)
        self._room_of_bed = np.repeat(np.arange(len(capacity)), capacity)
        self.bed = np.full(len(self._room_of_bed), -1, dtype=np.int64)
        used = self._start[:-1].copy()
        fixed = np.zeros(len(self.bed), dtype=bool)
        for atom in np.flatnonzero(room_of < exchange.outside):
            room = room_of[atom]
            size = int(problem.sizes[atom])
            self.bed[used[room]] = atom
            fixed[used[room] : used[room] + size] = size > 1
            used[room] += size
        self._movable = np.flatnonzero(~fixed)
        self.value = 0.0

    def room_of(self, n_atoms: int) -> IntArray:
        """Return the current room of every atom, -1 for atoms without a room."""
        out = np.full(n_atoms, -1, dtype=np.int64)
        there = self.bed >= 0
        out[self.bed[there]] = self._room_of_bed[there]
        return out

    def run(self, sweeps: int, factor: float = 1.0) -> None:
        """Advance the chain; ``factor`` multiplies the value in the exponent."""
        count = len(self._movable)
        if count < 2:
            return
        for _ in range(sweeps):
            choices = self._rng.integers(count, size=(count, 2))
            bars = np.log(np.maximum(self._rng.random(count), 1e-300)) / factor
            self.value += sweep_beds(
                self._scores,
                self._bonus,
                self._likes,
                self._start,
                self._room_of_bed,
                self.bed,
                self._movable,
                choices,
                bars,
            )


def share_probabilities(
    scores: FloatArray,
    rooms: Rooms,
    room: IntArray,
    rules: RoomRules | None = None,
    *,
    attributes: Attributes | None = None,
    pairs: IntArray | None = None,
    standard_error: float = 0.01,
    max_seconds: float = 30.0,
    rng: np.random.Generator | None = None,
    should_stop: StopCallback = never_stop,
) -> SharedRooms:
    """Draw placements at random from the model and count how often pairs share a room.

    Parameters
    ----------
    scores : ndarray, shape (n, n), nats, times the calibration if there is one.
    room : ndarray, shape (n,), a placement under the rules, from which half of the chains start.
    pairs : ndarray, shape (p, 2), default the pairs who share a room in the placement.
    standard_error : float, stop when the largest error is below this.
    max_seconds : float

    Notes
    -----
    Chains start from the placement and from draws under scores close to zero. Locked people keep
    their room, and people without a room stay without. Extra beds stay as the placement has them.
    Errors come from the means of batches in each chain (Geyer 1992). Without pairs nothing is
    drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from engine import Rooms
    >>> from engine.rooms.chain import share_probabilities
    >>> scores = np.log(np.array([[1, 2, 1, 1], [2, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1.0]]))
    >>> found = share_probabilities(scores, Rooms(("A", "B"), [2, 2]), np.array([0, 0, 1, 1]))
    >>> bool(0.0 < found.probabilities[0] < 1.0)
    True
    """
    rules = rules or RoomRules()
    rng = rng or np.random.default_rng(0)
    clock = SearchClock(max_seconds, should_stop)
    pairs = roommate_pairs(room) if pairs is None else np.asarray(pairs, dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InvalidProblemError(f"pairs: expected shape (any, 2), received {pairs.shape}.")
    if not len(pairs):
        return SharedRooms(pairs, np.empty(0), np.empty(0), 0, has_mixed=True)
    in_use = rooms.with_beds_in_use(room)
    formulation = formulate(scores, attributes or {}, in_use, rules, with_levels=False)
    exchange = Exchange(formulation.problem)
    start = seat_atoms(exchange, formulation, np.asarray(room, dtype=np.int64))
    chains = [RoomChain(exchange, start, child) for child in rng.spawn(CHAINS)]
    for chain in chains[::2]:
        chain.run(BATCH, 1e-3)
        chain.value = 0.0
    ends = formulation.atom_of[pairs]
    tally = _Tally(len(pairs))
    _settle(chains)
    while tally.n_batches < MAX_BATCHES:
        if clock.is_over() and (clock.is_cancelled or tally.n_batches >= FIRST_BATCHES):
            break
        tally.add(chains, ends, len(formulation.atom_of))
        if tally.n_batches >= FIRST_BATCHES and tally.errors().max(initial=0.0) <= standard_error:
            break
    return SharedRooms(
        read_only(pairs),
        read_only(tally.means()),
        read_only(tally.errors()),
        tally.n_batches * BATCH,
        tally.has_mixed(),
    )


def _settle(chains: list[RoomChain]) -> None:
    for chain in chains:
        chain.run(5 * BATCH)


class _Tally:
    """Shares of sweeps in which pairs share a room, batch by batch and chain by chain."""

    def __init__(self, n_pairs: int) -> None:
        self._n_pairs = n_pairs
        self._shares: list[FloatArray] = []

    @property
    def n_batches(self) -> int:
        """Number of batches so far."""
        return len(self._shares)

    def add(self, chains: list[RoomChain], ends: IntArray, n_atoms: int) -> None:
        """Advance every chain by one batch."""
        shares = np.zeros((len(chains), self._n_pairs))
        for c, chain in enumerate(chains):
            for _ in range(BATCH):
                chain.run(1)
                room = chain.room_of(n_atoms)[ends]
                shares[c] += (room[:, 0] == room[:, 1]) & (room[:, 0] >= 0)
        self._shares.append(shares / BATCH)

    def means(self) -> FloatArray:
        """Return the share of sweeps in which each pair shares a room."""
        if not self._shares:
            return np.full(self._n_pairs, np.nan)
        return np.asarray(np.mean(self._shares, axis=(0, 1)))

    def errors(self) -> FloatArray:
        """Return standard errors: the larger of the errors between batches and between chains."""
        if self.n_batches < FIRST_BATCHES:
            return np.full(self._n_pairs, np.inf)
        kept = np.array(self._shares[-(self.n_batches // 8) * 8 :])
        long = kept.reshape(8, -1, *kept.shape[1:]).mean(axis=1)  # eight long batches per chain
        batches = long.reshape(-1, self._n_pairs)
        within = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
        chains = kept.mean(axis=0)
        between = chains.std(axis=0, ddof=1) / np.sqrt(len(chains))
        # Pairs that were always or never together are uncertain too: the rule of three.
        floor = 1.0 / (3.0 * CHAINS * self.n_batches)
        return np.asarray(np.maximum(np.maximum(within, between), floor))

    def has_mixed(self) -> bool:
        """Return True if chains from either start keep equally many pairs of the placement."""
        if self.n_batches < FIRST_BATCHES:
            return False
        shares = np.array(self._shares)
        agree = shares.sum(axis=2)  # kept pairs of the placement: many from it, few from noise
        within = agree.var(axis=0, ddof=1).mean()
        between = agree.mean(axis=0).var(ddof=1)
        if within == 0.0:
            return bool(between == 0.0)
        return bool(np.sqrt(1.0 + between / within) < AGREEMENT)


def roommate_pairs(room: IntArray) -> IntArray:
    """Return the pairs i < j who share a room, shape (p, 2)."""
    order = np.argsort(room, kind="stable")
    pairs = []
    for group in np.split(order, np.flatnonzero(np.diff(room[order])) + 1):
        if len(group) and room[group[0]] >= 0:
            i, j = np.triu_indices(len(group), 1)
            pairs.append(np.column_stack((group[i], group[j])))
    found = np.concatenate(pairs) if pairs else np.empty((0, 2))
    return np.sort(found, axis=1).astype(np.int64)
