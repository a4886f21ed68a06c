"""Costs of moves and swaps between the rooms of a suite: the scores of suite mates."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from engine.rooms.suites import suite_score
from webapp.housing.scores import Scores
from webapp.housing.selectors.placements import PlacementRooms


class SuiteTerms:
    """Suite terms of a placement; the scores of the people of some suites are computed once.

    Parameters
    ----------
    rooms : PlacementRooms
    scores : Scores, of its placement.
    """

    def __init__(self, rooms: PlacementRooms, scores: Scores) -> None:
        self._rooms = rooms
        self._scores = scores
        self._tables: dict[tuple[int, ...], NDArray[np.float64]] = {}

    def change(self, moves: Mapping[int, int | None]) -> float:
        """Return what moves change in the suite terms, times their weight, in nats.

        ``moves`` gives the keys of new rooms, or None, by number.
        """
        where, suites = self._rooms.where, self._rooms.suites
        touched = {*moves.values(), *(where.get(number) for number in moves)}
        doors = {min(key, *suites[key]) for key in touched if key in suites}
        if not doors or not self._rooms.rules.suite:
            return 0.0
        suite_of = {key: k for k, door in enumerate(doors) for key in (door, *suites[door])}
        index = {key: k for k, key in enumerate(suite_of)}
        living = (number for key in suite_of for number in self._rooms.living(key))
        people = tuple(sorted({*living, *moves}))
        scores = self._table(people)

        def total(rooms: Mapping[int, int | None]) -> float:
            found = [index.get(rooms.get(number) or 0, -1) for number in people]
            return suite_score(
                scores, np.array(found, dtype=np.int64), np.array([*suite_of.values()])
            )

        return self._rooms.rules.suite * (total({**where, **moves}) - total(where))

    def _table(self, people: tuple[int, ...]) -> NDArray[np.float64]:
        """Return the scores of some people with each other, 0 where their days do not overlap."""
        if people not in self._tables:
            table = self._scores.between(people, people)
            dated = [k for k, number in enumerate(people) if number in self._rooms.stays]
            for k in dated:
                for j, other in enumerate(people):
                    if not self._scores.are_there_together(people[k], other):
                        table[k, j] = table[j, k] = 0.0
            self._tables[people] = table
        return self._tables[people]
