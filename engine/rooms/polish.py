"""Polish: empty a few rooms with the largest losses, and fill them again optimally."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import IntArray
from engine.rooms.closing import solve_whole
from engine.rooms.columns import Columns
from engine.rooms.exchange import Exchange
from engine.rooms.part import restrict
from engine.rooms.prices import Prices
from engine.rooms.pricing import Pricer
from engine.rooms.problem import RoomProblem
from engine.rooms.seating import seat_groups

PEOPLE, PART = 120, 2.0 / 3.0  # emptied at a time: this number of people, at most this share of all
FEWER = 0.8  # factor on the people if the programme took too long
SECONDS = 3.0  # counted seconds, for one integer programme
MOST_GROUPS = 6_000
SOLVED = 1e-6  # relative gap
MOST_HOMELESS = 20  # unplaced atoms that are included with every few rooms


@dataclass(slots=True)
class PolishSize:
    """Amount filled again at a time; reduced if programmes take too long."""

    most_people: float
    shortfall_share: float = 1.0

    @staticmethod
    def of(problem: RoomProblem) -> "PolishSize":
        """Return the initial size."""
        return PolishSize(min(float(PEOPLE), PART * float(problem.sizes.sum())))


class Polish:
    """Improvement of one placement where prices show the largest losses.

    ``prices`` are feasible for the problem: the loss of a room is its price minus its value.
    """

    def __init__(
        self, exchange: Exchange, columns: Columns, prices: Prices, size: PolishSize
    ) -> None:
        self._exchange, self._columns, self._prices = exchange, columns, prices
        self._clock, self.size = exchange.clock, size

    def step(self, rng: np.random.Generator) -> float:
        """Empty some rooms, fill them optimally, keep the result if better; return the gain."""
        problem, exchange = self._exchange.problem, self._exchange
        rooms = self._draw_rooms(rng)
        homeless = np.flatnonzero(exchange.room_of == exchange.outside)[:MOST_HOMELESS]
        atoms = np.union1d(np.flatnonzero(np.isin(exchange.room_of, rooms)), homeless)
        kinds, taken = exchange.kind_of_room[rooms], exchange.row_of_room[rooms]
        count = np.bincount(kinds, minlength=problem.n_kinds).astype(np.int64)
        part = restrict(problem, atoms, count, taken[taken >= 0])
        prices = Prices(self._prices.atoms[atoms], self._prices.kinds, self._prices.rows)
        before = exchange.value
        shortfall = self._shortfall(rooms, homeless) * self.size.shortfall_share
        groups = Pricer(part, self._clock, room_for=MOST_GROUPS).all_within(prices, shortfall)
        if groups is None:
            self.size.shortfall_share *= 0.7
            return 0.0
        chosen, bound = solve_whole(part, groups, self._clock, SECONDS)
        values = part.group_values(*(column[chosen] for column in groups))
        if not len(chosen) or bound > values.sum() + SOLVED * max(abs(bound), 1.0):
            self.size.most_people *= FEWER
        if not len(chosen):
            return 0.0
        members, kind, row = (column[chosen] for column in groups)
        members = np.where(members >= 0, atoms[members], -1)
        room_of = exchange.room_of.copy()
        room_of[atoms] = exchange.outside
        seat_groups(exchange, room_of, rooms[::-1], (members, kind, row))
        kept = exchange.room_of.copy()
        exchange.start(room_of)
        gain = exchange.value - before
        if gain <= 0.0:
            exchange.start(kept)
            return 0.0
        self._columns.add(members, kind, row)
        return gain

    def _shortfall(self, rooms: IntArray, homeless: IntArray) -> float:
        """Return the prices of rooms and of unplaced atoms, minus the values of the rooms.

        Unplaced atoms with negative prices are best left out: they do not lower the shortfall.
        """
        exchange, prices = self._exchange, self._prices
        asked = prices.atoms[np.isin(exchange.room_of, rooms)].sum()
        asked += np.maximum(prices.atoms[homeless], 0.0).sum()
        asked += prices.kinds[exchange.kind_of_room[rooms]].sum()
        taken = exchange.row_of_room[rooms]
        asked += prices.rows[taken[taken >= 0]].sum()
        return float(asked - exchange.values_of(rooms).sum())

    def _draw_rooms(self, rng: np.random.Generator) -> IntArray:
        """Draw a room by its loss, then rooms that known groups link to those already drawn."""
        exchange = self._exchange
        members, kind, row = exchange.groups()
        rooms = np.unique(exchange.room_of[exchange.room_of < exchange.outside])
        asked = self._prices.of_groups(members, kind, row)
        loss = np.maximum(asked - exchange.values_of(rooms), 0.0) + 1e-12
        near = self._columns.reduced_values(self._prices)
        links = np.flatnonzero(near > -np.quantile(loss, 0.9))
        room_of = np.append(exchange.room_of, exchange.outside)
        linked = room_of[self._columns.members[links]]
        chosen = np.zeros(exchange.outside + 1, dtype=bool)
        chosen[rng.choice(rooms, p=loss / loss.sum())] = True
        people = np.bincount(exchange.room_of, minlength=exchange.outside + 1)
        is_used = np.zeros(exchange.outside + 1)
        is_used[rooms] = loss
        while people[chosen].sum() < self.size.most_people:
            touching = chosen[linked].any(axis=1)
            weight = np.bincount(linked[touching].ravel(), minlength=exchange.outside + 1)
            weight = np.where(chosen, 0.0, weight * is_used)
            weight[exchange.outside] = 0.0
            if weight.sum() <= 0.0:
                weight = np.where(chosen, 0.0, is_used)
            if weight.sum() <= 0.0:
                break
            count = min(3, int((weight > 0.0).sum()))
            picked = rng.choice(len(weight), count, replace=False, p=weight / weight.sum())
            chosen[picked] = True
        return np.flatnonzero(chosen[:-1])
