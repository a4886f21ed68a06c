"""Information that each question gives about roommates, in nats a student.

The information of a set S of questions is the reduction in uncertainty about a student's roommate:

    I(S) = mean over students of  log(n - 1) - H(tau_i),        tau the marginals under questions S

It is zero if the questions give no information, and log(n - 1) if they determine the roommate.
"""

import time
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from engine.core.arguments import BoolArray, FloatArray
from engine.core.checkpoint import Checkpoint
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.crf.questionnaire import Question
from engine.crf.survey import Survey
from engine.inference.matching.cascade import compute_group_marginals
from engine.kernels.threads import one_blas_thread
from engine.learning.roommates.kept_estimates import KeptEstimates
from engine.learning.roommates.model import RoommateModel
from engine.solvers import control

SAMPLE = 300  # sampled students; their information is within a few per cent of that of all
NO_PAIRS = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class QuestionInformation:
    """Information that one question gives about roommates.

    Parameters
    ----------
    question : Question
    alone : float, nats a student, if it were the only question.
    lost_without : float, nats a student, loss if only this question is left out.
    rank : int, from 1: position in the greedy order, which always adds the best question next.
    added : float, nats a student that the question adds at its position in that order.
    """

    question: Question
    alone: float
    lost_without: float
    rank: int
    added: float


def question_information(
    model: RoommateModel,
    survey: Survey,
    *,
    rng: np.random.Generator | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
    kept: KeptEstimates | None = None,
) -> tuple[QuestionInformation, ...]:
    """Return the information that every question of a model gives about a survey's students.

    Parameters
    ----------
    model : RoommateModel; its calibration is applied if it has one.
    survey : Survey, with the questions of the model; of more than 300 students a sample is used.
    rng : Generator, draws the sample; defaults to seed 0.
    on_progress, should_stop : callbacks
    kept : KeptEstimates; an interrupted run continues from what it holds.

    Returns
    -------
    tuple of QuestionInformation, in the order of the questionnaire.

    Raises
    ------
    InvalidProblemError
        If the survey has other questions or fewer than four students.
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    About Q^2 / 2 solutions of a matching of 300 students, some milliseconds each. Weights learned
    from few pairs carry noise that counts as information: see ``estimate_weights``.
    """
    model.check_survey(survey)
    n = min(survey.n_students, SAMPLE) // 2 * 2
    if n < 4:
        raise InvalidProblemError("Information about pairs needs at least four students.")
    chosen = (rng or np.random.default_rng(0)).choice(survey.n_students, n, replace=False)
    work = _Questions(model, survey.take(np.sort(chosen)), should_stop, kept)
    count = len(work.parts)
    with one_blas_thread():
        on_progress(Progress("Reading the information of each question", fraction=0.0))
        alone = [work.information(np.arange(count) == q) for q in range(count)]
        everything = work.information(np.ones(count, dtype=np.bool_))
        without = [work.information(np.arange(count) != q) for q in range(count)]
        order, added = _greedy(work, alone, on_progress)
    questions = model.questionnaire.questions
    return tuple(
        QuestionInformation(
            questions[q], alone[q], everything - without[q], order.index(q) + 1, added[q]
        )
        for q in range(count)
    )


class _Questions:
    """Scores of pairs by question, and the information of any set of questions.

    A run asks for the same sets in the same order each time, so that its checkpoint holds no more
    than the answers so far.
    """

    def __init__(
        self,
        model: RoommateModel,
        survey: Survey,
        should_stop: StopCallback,
        kept: KeptEstimates | None,
    ) -> None:
        factor = 1.0 if model.calibration is None else model.calibration
        codes = model.features.codes(survey)
        matrix = factor * model.features.block_matrix(model.theta)
        self.parts = [
            matrix[np.ix_(codes[:, q], codes[:, q])] for q in range(model.questionnaire.n_questions)
        ]
        self.rho = model.rho
        self.should_stop = should_stop
        self._checkpoint: Checkpoint | None = None
        self._values: list[float] = []  # in the order in which they were asked for
        self._n_asked = 0
        self._saved_at = time.perf_counter()
        if kept is not None:
            digest = sha256(repr(self.rho).encode())
            for part in self.parts:
                digest.update(part.tobytes())
            self._checkpoint = kept.checkpoint(f"information_{digest.hexdigest()[:16]}")
            saved = self._checkpoint.load()
            self._values = [] if saved is None else [float(value) for value in saved["values"]]

    def information(self, asked: BoolArray) -> float:
        """Return the information I of the selected questions, nats a student."""
        self._n_asked += 1
        if self._n_asked <= len(self._values):
            return self._values[self._n_asked - 1]
        if self.should_stop():
            raise StoppedError("Cancelled.")
        scores = np.zeros(self.parts[0].shape)
        for q in np.flatnonzero(asked):
            scores += self.parts[q]
        found = compute_group_marginals(scores, self.rho, NO_PAIRS, should_stop=self.should_stop)
        self._values.append(information_of(found.tau))
        if time.perf_counter() - self._saved_at >= control.CHECKPOINT_SECONDS:
            self._save()
        return self._values[-1]

    def _save(self) -> None:
        if self._checkpoint is not None:
            self._checkpoint.save({"values": np.array(self._values)})
        self._saved_at = time.perf_counter()


def information_of(tau: FloatArray) -> float:
    """Return the information of marginals: the mean of log(n - 1) - H(tau_i), nats."""
    logs = np.log(np.where(tau > 0.0, tau, 1.0))
    entropy = -float((tau * logs).sum()) / len(tau)
    return max(float(np.log(len(tau) - 1)) - entropy, 0.0)


def _greedy(
    work: _Questions, alone: list[float], on_progress: ProgressCallback
) -> tuple[list[int], list[float]]:
    """Return the greedy order of the questions, and the information that each adds in it."""
    count = len(alone)
    asked, known = np.zeros(count, dtype=np.bool_), 0.0
    order: list[int] = []
    added = [0.0] * count
    totals = np.array(alone)
    while len(order) < count:
        if order:
            totals = np.array(
                [
                    -1.0 if asked[q] else work.information(asked | (np.arange(count) == q))
                    for q in range(count)
                ]
            )
        best = int(totals.argmax())
        added[best], known = float(totals[best]) - known, float(totals[best])
        asked[best] = True
        order.append(best)
        on_progress(Progress("Ordering the questions", fraction=len(order) / count))
    return order, added
