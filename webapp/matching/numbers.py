"""Numbers of one proposal: score, probability, uncertainty and reasons of any two students."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import Rules, Survey, explain_pair, load_roommate_model
from engine.learning.roommates.explanation import Explanation
from engine.learning.roommates.model import RoommateModel
from webapp.cohorts.selectors.surveys import cohort_positions, cohort_survey, questionnaire_of
from webapp.files import store
from webapp.files.storage import read_arrays
from webapp.matching.allowed_pairs import allowed_scores
from webapp.matching.like_students import (
    first_of_groups,
    multiples_of_even_draw,
    order_of_likeness,
)
from webapp.matching.models import Proposal
from webapp.matching.rules import proposal_rules

NEXT_BEST = 3
KEPT_MODELS = 32  # about 100 kB each
MAX_CHIPS = 3
SMALL_REASON = 0.05  # nats: smaller reasons get no chip
WEAK_REASON = 0.1  # nats: the filter counts larger negative reasons as speaking against a pair


@dataclass(frozen=True, slots=True)
class Candidate:
    """A next-best partner: the student, the score and the probability."""

    number: int
    score: float
    probability: float


def kept_model(path: Path) -> RoommateModel:
    """Return the model of a file; a process caches the models that it read last.

    A file is replaced, never changed: equal time and size mean equal content.
    """
    try:
        stat = store.get(path).stat()
    except FileNotFoundError:
        return load_roommate_model(path)  # raises its own error about a missing file
    return _read_model(path, stat.st_ino, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=KEPT_MODELS)
def _read_model(path: Path, *_: int) -> RoommateModel:
    return load_roommate_model(path)


class ProposalNumbers:
    """Reader of a proposal's stored results, which loads each part on first use."""

    def __init__(self, proposal: Proposal) -> None:
        self.proposal = proposal

    @cached_property
    def model(self) -> RoommateModel:
        """Model with the weights."""
        return kept_model(self.proposal.model.path)

    @cached_property
    def survey(self) -> Survey:
        """Answers of the cohort to the model's questions."""
        return cohort_survey(self.proposal.cohort, questionnaire_of(self.proposal.model.questions))

    @cached_property
    def position(self) -> Mapping[int, int]:
        """Position in the survey of every number on screen."""
        return cohort_positions(self.proposal.cohort)

    @cached_property
    def rules(self) -> Rules:
        """Rules without locks, for comparing a pair with all possible ones."""
        return proposal_rules(self.proposal, with_locks=False)

    @property
    def _files(self) -> tuple[Path, Path]:
        if self.proposal.arrays is None:
            raise ValueError("The proposal is not computed yet.")
        return self.proposal.files_of(self.proposal.arrays)

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Uncertainty and number of allowed partners of every student at the last computation."""
        return read_arrays(self._files[0])

    @cached_property
    def marginals(self) -> NDArray[np.float32]:
        """Probabilities of all pairs, memory-mapped: only rows that are read are loaded."""
        return np.load(store.get(self._files[1]), mmap_mode="r", allow_pickle=False)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Students in the order of their answers, without those added after the computation."""
        order = order_of_likeness(self.survey, self.proposal.model)
        return order[order < len(self.arrays["n_allowed"])]

    @cached_property
    def between_groups(self) -> NDArray[np.float64]:
        """Probability of pairs between groups of like students, as multiples of an even draw."""
        kept = self.arrays.get("between_groups")
        if kept is not None:
            return kept
        # Older proposals do not store it: compute it from all pairs.
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
        # Older proposals do not store them: read the marginals.
        return allowed_scores(self.model, self.survey, self.marginals)

    def explain(self, first: int, second: int) -> Explanation:
        """Return the reasons for and against pairing two students, by number."""
        i, j = self.position[first], self.position[second]
        return explain_pair(self.model, self.survey, i, j, self.rules)

    def next_best(self, number: int, partner: int) -> list[Candidate]:
        """Return the most probable partners of a student besides the current one."""
        i = self.position[number]
        row = np.array(self.marginals[i], dtype=np.float64)
        row[[i, self.position[partner]]] = 0.0
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
        """Return the stored fields of a pair, given by two numbers on screen."""
        i, j = self.position[first], self.position[second]
        explanation = self.explain(first, second)
        return {
            "score": explanation.score,
            **pair_probability(
                float(self.marginals[i, j]),
                self.arrays["doubt"][[i, j]],
                self.arrays["n_allowed"][[i, j]],
            ),
            **reasons(self._in_order(explanation)),
        }


def pair_probability(
    probability: float, doubts: NDArray[Any], allowed: NDArray[Any]
) -> dict[str, float]:
    """Return a pair's probability, multiple of an even draw, mean uncertainty and its share."""
    mean_allowed = float(np.mean(allowed))
    doubt = float(np.mean(doubts))
    return {
        "probability": probability,
        "multiple": probability * mean_allowed,
        "doubt": doubt,
        "allowed": mean_allowed,
        # A student with one possible partner is certain of that partner, whatever the share.
        "doubt_share": doubt / mean_allowed if mean_allowed > 1 else 0.0,
    }


def reasons(amounts: Mapping[str, float]) -> dict[str, Any]:
    """Return the largest reasons as chips, and the numbers of the questions that speak against.

    ``amounts`` maps every question of the model, in order, to its part of the score minus that of
    an average partner (nats).
    """
    largest = sorted(amounts, key=lambda name: -abs(amounts[name]))[:MAX_CHIPS]
    chips = [[name, amounts[name] > 0] for name in largest if abs(amounts[name]) >= SMALL_REASON]
    against = [k for k, amount in enumerate(amounts.values()) if amount <= -WEAK_REASON]
    return {"chips": chips, "weak": "|" + "".join(f"{k}|" for k in against)}
