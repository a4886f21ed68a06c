"""Scores of pairs, students and rooms of a placement, from the weights of its model."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from engine import Survey
from engine.learning.roommates.model import RoommateModel
from webapp.cohorts.selectors.surveys import (
    cohort_positions,
    cohort_survey,
    questionnaire_of,
)
from webapp.housing.models import Placement
from webapp.housing.stays import ALWAYS, Stay, stays_in
from webapp.matching.numbers import kept_model


class Scores:
    """Scores of one placement; the model and the answers are read on first use."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement

    @cached_property
    def model(self) -> RoommateModel:
        """The model with its weights."""
        return kept_model(self.placement.model.path)

    @cached_property
    def survey(self) -> Survey:
        """The answers to the model's questions, in the order of the numbers."""
        questionnaire = questionnaire_of(self.placement.model.questions)
        return cohort_survey(self.placement.cohort, questionnaire)

    @cached_property
    def position(self) -> Mapping[int, int]:
        """Position in the survey of every number on screen."""
        return cohort_positions(self.placement.cohort)

    @cached_property
    def stays(self) -> dict[int, Stay]:
        """The days of the students with dates of their own, by number on screen."""
        return stays_in(self.placement)

    def are_there_together(self, one: int, other: int) -> bool:
        """Return True if the days of two students' beds overlap."""
        stays = self.stays
        return stays.get(one, ALWAYS).overlaps(stays.get(other, ALWAYS))

    def of_pairs(self, pairs: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
        """Return the scores W of some pairs of students (by number), shape (len(pairs),)."""
        position = self.position
        rows = np.array([(position[a], position[b]) for a, b in pairs], dtype=np.int64)
        scores = self.model.features.pair_scores(self.survey, self.model.theta, rows.reshape(-1, 2))
        return np.asarray(scores.sum(axis=1))

    def between(self, ones: Sequence[int], others: Sequence[int]) -> NDArray[np.float64]:
        """Return the scores W of some students with others, shape (len(ones), len(others))."""
        rows = np.array([self.position[n] for n in ones], dtype=np.int64)
        columns = np.array([self.position[n] for n in others], dtype=np.int64)
        pairs = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
        scores = self.model.features.pair_scores(self.survey, self.model.theta, pairs).sum(axis=1)
        return np.asarray(scores.reshape(len(rows), len(columns)))

    def of_members(self, members: Sequence[int]) -> dict[int, float | None]:
        """Return each student's score in one room: the mean of their pairs; None when alone."""
        return self.of_rooms([members])

    def of_rooms(
        self, rooms: Sequence[Sequence[int]], stays: Mapping[int, Stay] | None = None
    ) -> dict[int, float | None]:
        """Return each student's score in some rooms, each given by its people's numbers.

        People who use a room one after the other are no roommates: their pair does not count.
        ``stays`` are the days of students with dates of their own, by default the placement's.
        """
        stays = self.stays if stays is None else stays
        pairs = [
            pair
            for members in rooms
            for pair in combinations(members, 2)
            if stays.get(pair[0], ALWAYS).overlaps(stays.get(pair[1], ALWAYS))
        ]
        sums: dict[int, float] = defaultdict(float)
        counts: Counter[int] = Counter()
        for (a, b), weight in zip(pairs, self.of_pairs(pairs) if pairs else (), strict=True):
            sums[a] += float(weight)
            sums[b] += float(weight)
            counts.update((a, b))
        return {
            number: sums[number] / counts[number] if counts[number] else None
            for members in rooms
            for number in members
        }

    def total_of(self, members: Sequence[int]) -> float:
        """Return the score of one room: half the sum of its people's scores."""
        return sum(score for score in self.of_members(members).values() if score is not None) / 2


def room_score(scores: Sequence[float | None]) -> float | None:
    """Return the mean of the pairs of a room from its people's scores; None for a single."""
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if len(known) > 1 else None
