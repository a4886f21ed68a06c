"""Polish: empty a few rooms that lose most, and fill them again in the best of all ways."""

import numpy as np

from engine.core.arguments import IntArray
from engine.rooms.closing import solve_whole
from engine.rooms.columns import Columns
from engine.rooms.exchange import Exchange
from engine.rooms.part import restrict
from engine.rooms.prices import Prices
from engine.rooms.pricing import Pricer
from engine.rooms.seating import seat_groups

PEOPLE, PART = 120, 2.0 / 3.0  # emptied at a time: so many, and at most this part of all
FEWER = 0.8  # times as many, where the programme took too long
SECONDS = 3.0  # for one integer programme
MOST_GROUPS = 6_000
SOLVED = 1e-6  # relative
MOST_HOMELESS = 20  # who get another chance with every few rooms


class Polish:
    """Improves one placement where prices say that its rooms lose most.

    ``prices`` are feasible for the problem: a room's loss is what they ask for it beyond its worth.
    """

    def __init__(
        self, exchange: Exchange, columns: Columns, prices: Prices, penalty: float
    ) -> None:
        self._exchange, self._columns, self._prices = exchange, columns, prices
        self._penalty = penalty
        self._shortfall_share = 1.0
        self._most_people = min(PEOPLE, PART * exchange.problem.sizes.sum())

    def step(self, rng: np.random.Generator) -> float:
        """Empty some rooms, fill them at best, keep that if better; return the gain."""
        problem, exchange = self._exchange.problem, self._exchange
        rooms = self._draw_rooms(rng)
        homeless = np.flatnonzero(exchange.room_of == exchange.outside)[:MOST_HOMELESS]
        atoms = np.union1d(np.flatnonzero(np.isin(exchange.room_of, rooms)), homeless)
        kinds, taken = exchange.kind_of_room[rooms], exchange.row_of_room[rooms]
        count = np.bincount(kinds, minlength=problem.n_kinds).astype(np.int64)
        part = restrict(problem, atoms, count, taken[taken >= 0])
        prices = Prices(self._prices.atoms[atoms], self._prices.kinds, self._prices.rows)
        before = exchange.value
        shortfall = self._shortfall(rooms, homeless) * self._shortfall_share
        groups = Pricer(part, room_for=MOST_GROUPS).all_within(prices, shortfall)
        if groups is None:
            self._shortfall_share *= 0.7
            return 0.0
        chosen, bound = solve_whole(part, groups, self._penalty, SECONDS)
        values = part.group_values(*(column[chosen] for column in groups))
        if not len(chosen) or bound > values.sum() + SOLVED * max(abs(bound), 1.0):
            self._most_people *= FEWER
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
        """Return what prices ask for rooms, and for those without one, beyond what they are worth.

        Who is asked less than nothing for is best left out: no reason to look at fewer groups.
        """
        exchange, prices = self._exchange, self._prices
        asked = prices.atoms[np.isin(exchange.room_of, rooms)].sum()
        asked += np.maximum(prices.atoms[homeless], 0.0).sum()
        asked += prices.kinds[exchange.kind_of_room[rooms]].sum()
        taken = exchange.row_of_room[rooms]
        asked += prices.rows[taken[taken >= 0]].sum()
        return float(asked - exchange.values_of(rooms).sum())

    def _draw_rooms(self, rng: np.random.Generator) -> IntArray:
        """Draw a room by its loss, and rooms that known groups link to those drawn so far."""
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
        while people[chosen].sum() < self._most_people:
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
