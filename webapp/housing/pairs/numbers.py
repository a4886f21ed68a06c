"""Numbers of one placement: score, probability, uncertainty and reasons of any two students."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import Rules, explain_pair
from engine.core.npz_file import read_array
from engine.learning.roommates.explanation import Explanation
from webapp.files import store
from webapp.files.storage import read_arrays
from webapp.housing.pairs.rules import pair_rules
from webapp.housing.scores import Scores
from webapp.matching.allowed_pairs import allowed_scores
from webapp.matching.like_students import (
    first_of_groups,
    multiples_of_even_draw,
    order_of_likeness,
)
from webapp.matching.numbers import pair_probability, reasons

NEXT_BEST = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A next-best partner: the student, the score and the probability."""

    number: int
    score: float
    probability: float


class PairNumbers(Scores):
    """Reader of a placement's stored results, which loads each part on first use."""

    @cached_property
    def rules(self) -> Rules:
        """Rules without locks, for comparing a pair with all possible ones."""
        return pair_rules(self.placement, with_locks=False)

    @property
    def _files(self) -> tuple[Path, Path]:
        if self.placement.arrays is None:
            raise ValueError("The placement is not computed yet.")
        return self.placement.files_of(self.placement.arrays)

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Uncertainty and number of allowed partners of every student at the last computation."""
        return read_arrays(self._files[0])

    @cached_property
    def marginals(self) -> NDArray[np.float32]:
        """Probabilities of all pairs, memory-mapped: only rows that are read are loaded."""
        return read_array(store.get(self._files[1]), is_mapped=True)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Students in the order of their answers, without those added after the computation."""
        order = order_of_likeness(self.survey, self.placement.model)
        return order[order < len(self.arrays["n_allowed"])]

    @cached_property
    def between_groups(self) -> NDArray[np.float64]:
        """Probability of pairs between groups of like students, as multiples of an even draw."""
        kept = self.arrays.get("between_groups")
        if kept is not None:
            return kept
        # Earlier versions did not store it: compute it from all pairs.
        starts, n_allowed = first_of_groups(len(self.order)), self.arrays["n_allowed"]
        return multiples_of_even_draw(self.marginals, n_allowed, self.order, starts)

    def number(self, position: int) -> int:
        """Return the number on screen of a survey position."""
        return int(self.survey.ids[position].removeprefix("S-"))

    @cached_property
    def allowed_scores(self) -> NDArray[np.floating[Any]]:
        """Scores of the pairs that the last computation allowed: all, or an even sample."""
        kept = self.arrays.get("allowed_scores")
        if kept is not None:
            return kept
        # Earlier versions did not store them: read the marginals.
        return allowed_scores(self.model, self.survey, self.marginals)

    def explain(self, first: int, second: int) -> Explanation:
        """Return the reasons for and against pairing two students, by number."""
        i, j = self.position[first], self.position[second]
        return explain_pair(self.model, self.survey, i, j, self.rules)

    def next_best(self, number: int, partner: int) -> list[Candidate]:
        """Return the most probable partners of a student besides the current one."""
        i, n = self.position[number], len(self.marginals)
        if i >= n:
            return []  # a late arrival, whom the last computation did not know
        row = np.array(self.marginals[i], dtype=np.float64)
        row[[k for k in (i, self.position[partner]) if k < n]] = 0.0
        top = np.argsort(-row, kind="stable")[:NEXT_BEST]
        top = top[row[top] > 0.0]
        pairs = np.stack([np.full(len(top), i), top], axis=1)
        scores = self.model.features.pair_scores(self.survey, self.model.theta, pairs).sum(axis=1)
        return [
            Candidate(self.number(int(k)), float(score), float(row[k]))
            for k, score in zip(top, scores, strict=True)
        ]

    def _in_order(self, explanation: Explanation) -> dict[str, float]:
        amounts = {c.question: c.amount for c in explanation.contributions}
        return {name: amounts[name] for name in self.model.questionnaire.names}

    def pair_values(self, first: int, second: int) -> dict[str, Any]:
        """Return the stored fields of a pair, given by two numbers on screen.

        A late arrival has no probability before pairs are computed again: it counts as 0.
        """
        i, j = self.position[first], self.position[second]
        explanation = self.explain(first, second)
        known = [k for k in (i, j) if k < len(self.marginals)]
        probability = float(self.marginals[i, j]) if len(known) == 2 else 0.0
        doubt, allowed = self.arrays["doubt"], self.arrays["n_allowed"]
        return {
            "score": explanation.score,
            **pair_probability(
                probability,
                doubt[known] if known else np.zeros(1),
                allowed[known] if known else np.full(1, float(np.mean(allowed))),
            ),
            **reasons(self._in_order(explanation)),
        }
