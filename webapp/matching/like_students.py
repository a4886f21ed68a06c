"""Groups of students with like answers, and the probability of pairs between two groups."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import Survey
from webapp.matching.models import LearnedModel

GROUPS = 24
LEADING_QUESTIONS = 3


def leading_questions(model: LearnedModel) -> list[dict[str, Any]]:
    """Return the weights of the most important questions, most important first."""
    return sorted(model.weights, key=lambda row: -row["importance"])[:LEADING_QUESTIONS]


def order_of_likeness(survey: Survey, model: LearnedModel) -> NDArray[np.int64]:
    """Return the students sorted by their answers to the leading questions, the first one first."""
    names = list(survey.questionnaire.names)
    keys = [survey.answers[:, names.index(row["question"])] for row in leading_questions(model)]
    return np.lexsort(keys[::-1])


def first_of_groups(n_students: int, n_groups: int = GROUPS) -> NDArray[np.int64]:
    """Return the start of each equal group in the order; fewer groups for few students."""
    return np.linspace(0, n_students, min(n_groups, n_students) + 1).round().astype(np.int64)[:-1]


def multiples_of_even_draw(
    marginals: NDArray[np.float32],
    n_allowed: NDArray[np.int64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the ratio of all allowed pairs' probability to that of an even draw, by group pair.

    The even draw of a pair is one over the mean number of the two students' allowed partners, as in
    the pair's own figure. Pairs that are not allowed count in neither; nan if none is allowed.
    """
    allowed = np.maximum(n_allowed[order], 1).astype(np.float64)
    relative = np.full((len(starts), len(starts)), np.nan)
    for cell, rows in enumerate(np.split(np.arange(len(order)), starts[1:])):
        chances = marginals[order[rows]][:, order]
        even = np.where(chances > 0, 2.0 / (allowed[rows, None] + allowed), 0.0)
        sums = np.add.reduceat(chances.sum(axis=0, dtype=np.float64), starts)
        evens = np.add.reduceat(even.sum(axis=0), starts)
        np.divide(sums, evens, out=relative[cell], where=evens > 0)
    return relative


def multiples_between_groups(
    survey: Survey,
    model: LearnedModel,
    marginals: NDArray[np.float32],
    n_allowed: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return :func:`multiples_of_even_draw` between the groups of like students."""
    order = order_of_likeness(survey, model)
    return multiples_of_even_draw(marginals, n_allowed, order, first_of_groups(len(order)))
