"""Scores of pairs, students and rooms of a placement, from the weights of its model."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine import Survey, load_roommate_model
from engine.learning.roommates.model import RoommateModel
from webapp.cohorts.selectors.surveys import (
    cohort_positions,
    cohort_survey,
    questionnaire_of,
)
from webapp.files import store
from webapp.housing.models import Placement


class Scores:
    """Reads model and answers when first asked for."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement

    @cached_property
    def model(self) -> RoommateModel:
        """The weights."""
        return load_roommate_model(store.get(self.placement.model.path))

    @cached_property
    def survey(self) -> Survey:
        """The answers, read by the model's questions, in the order of the numbers."""
        questionnaire = questionnaire_of(self.placement.model.questions)
        return cohort_survey(self.placement.cohort, questionnaire)

    @cached_property
    def position(self) -> Mapping[int, int]:
        """Position in the survey of every number on screen."""
        return cohort_positions(self.placement.cohort)

    def of_pairs(self, pairs: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
        """Return W of some pairs of students (by number), shape (len(pairs),)."""
        position = self.position
        rows = np.array([(position[a], position[b]) for a, b in pairs], dtype=np.int64)
        scores = self.model.features.pair_scores(self.survey, self.model.theta, rows.reshape(-1, 2))
        return np.asarray(scores.sum(axis=1))

    def between(self, ones: Sequence[int], others: Sequence[int]) -> NDArray[np.float64]:
        """Return W of some students (by number) with others, shape (len(ones), len(others))."""
        rows = np.array([self.position[n] for n in ones], dtype=np.int64)
        columns = np.array([self.position[n] for n in others], dtype=np.int64)
        pairs = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
        scores = self.model.features.pair_scores(self.survey, self.model.theta, pairs).sum(axis=1)
        return np.asarray(scores.reshape(len(rows), len(columns)))

    def of_members(self, members: Sequence[int]) -> dict[int, float | None]:
        """Return the score of everybody in one room: the mean of their pairs; None when alone."""
        if len(members) < 2:
            return dict.fromkeys(members)
        table = self.between(members, members)
        np.fill_diagonal(table, 0.0)
        means = table.sum(axis=1) / (len(members) - 1)
        return dict(zip(members, means.tolist(), strict=True))


def room_score(scores: Sequence[float | None]) -> float | None:
    """Return the mean of the pairs of a room from its people's scores; None for a single."""
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if len(known) > 1 else None
