"""Learned model of roommates' choices, and its file format."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.npz_file import read_model_parts, write_npz
from engine.crf.questionnaire import Questionnaire
from engine.crf.survey import Survey
from engine.crf.survey_features import SurveyFeatures

FORMAT = "bethe-hall roommate model 1"
MAX_FILE_BYTES = 64 * 1024 * 1024
SHARES_SUM = 1e-6  # largest rounding error of the sum of a question's shares


@dataclass(frozen=True, slots=True)
class RoommateModel:
    """Learned weights of answers, with the calibration of their probabilities.

    Parameters
    ----------
    theta : ndarray, shape (K,), nats, read-only.
    features : SurveyFeatures, the meaning of theta.
    ridge : float, lambda used in learning.
    rho : float, reweighting in [0, 1]; 1 is Bethe.
    calibration : float or None
        Factor on the scores with which pair probabilities matched held-out pairs (1 means no
        change); None if it was not checked, and then a probability is the model's confidence only.
    method : str, solver and inner methods that computed theta, empty if unknown.

    Examples
    --------
    >>> from engine import simulate_university, train_roommates
    >>> year = simulate_university(30, 1, rng=np.random.default_rng(0)).cohorts[0]
    >>> train_roommates([(year.survey, year.pairs)]).model.scores(year.survey).shape
    (30, 30)
    """

    theta: FloatArray
    features: SurveyFeatures
    ridge: float
    rho: float
    calibration: float | None = None
    method: str = ""

    @property
    def questionnaire(self) -> Questionnaire:
        """Questionnaire that the model was learned from."""
        return self.features.questionnaire

    def scores(self, survey: Survey) -> FloatArray:
        """Return the scores W of all pairs of a survey, shape (n, n), nats.

        Raises
        ------
        InvalidProblemError
            If the survey has other questions.
        """
        self.check_survey(survey)
        return self.features.scores(survey, self.theta)

    def check_survey(self, survey: Survey) -> None:
        """Raise InvalidProblemError, with the name of the question, if the survey differs."""
        theirs = {question.name: question for question in survey.questionnaire.questions}
        for question in self.questionnaire.questions:
            if question.name not in theirs:
                raise InvalidProblemError(
                    f"This model was learned from other questions: {question.name} is missing."
                )
            unseen = [x for x in theirs[question.name].levels if x not in question.levels]
            if unseen:
                raise InvalidProblemError(
                    f"{question.name}: the answer {unseen[0]!r} was never seen in learning; "
                    f"expected one of {', '.join(question.levels)}."
                )
        self.questionnaire.check_same_as(survey.questionnaire)

    def with_calibration(self, calibration: float) -> "RoommateModel":
        """Return the same model with another calibration."""
        return replace(self, calibration=float(calibration))

    def save(self, path: Path | str) -> None:
        """Write the model atomically, as an ``.npz`` of numbers and text without code."""
        arrays = {
            "format": np.array(FORMAT),
            "theta": self.theta,
            "questionnaire": np.array(self.questionnaire.to_json()),
            "has_blanks": np.array(self.features.has_blanks, dtype=np.bool_),
            "frequencies": np.concatenate([np.array(x) for x in self.features.frequencies]),
            "ridge": np.array(self.ridge),
            "rho": np.array(self.rho),
            "calibration": np.array(np.nan if self.calibration is None else self.calibration),
            "method": np.array(self.method),
        }
        write_npz(path, arrays)


def make_roommate_model(
    theta: FloatArray, features: SurveyFeatures, ridge: float, rho: float, method: str = ""
) -> RoommateModel:
    """Build a roommate model that owns a read-only copy of theta."""
    own = read_only(np.array(theta, dtype=np.float64))
    return RoommateModel(own, features, ridge, rho, method=method)


def load_roommate_model(path: Path | str) -> RoommateModel:
    """Read a roommate model file and check everything in it.

    Parameters
    ----------
    path : Path or str, a file that ``save`` of a model wrote.

    Returns
    -------
    RoommateModel

    Raises
    ------
    InvalidProblemError
        If the file is absent, too large, of another format, or its parts do not fit together.

    Examples
    --------
    >>> load_roommate_model("absent.npz")
    Traceback (most recent call last):
        ...
    engine.core.errors.InvalidProblemError: absent.npz: there is no such file.
    """
    name = Path(path).name
    parts = read_model_parts(path, (*_PARTS, _LATER_PART), max_bytes=MAX_FILE_BYTES)
    missing = [key for key in _PARTS if key not in parts]
    if missing or str(parts["format"]) != FORMAT:
        raise InvalidProblemError(f"{name} is not a roommate model of this version.")
    try:
        return _assemble(parts)
    except (TypeError, ValueError, IndexError) as error:
        raise InvalidProblemError(f"{name} is damaged: {error}") from error


_PARTS = (
    "format",
    "theta",
    "questionnaire",
    "has_blanks",
    "frequencies",
    "ridge",
    "rho",
    "calibration",
)
_LATER_PART = "method"
"""Part that files of earlier versions lack."""


def _assemble(parts: dict[str, FloatArray]) -> RoommateModel:
    questionnaire = Questionnaire.from_json(str(parts["questionnaire"]))
    blanks = tuple(bool(x) for x in np.atleast_1d(parts["has_blanks"]))
    levels = [question.n_levels for question in questionnaire.questions]
    shares = np.asarray(parts["frequencies"], dtype=np.float64)
    theta = np.asarray(parts["theta"], dtype=np.float64)
    if len(blanks) != len(levels) or shares.shape != (sum(levels),):
        raise InvalidProblemError("its questions and answers do not fit together.")
    cuts = np.cumsum(levels)[:-1]
    frequencies = tuple(tuple(float(x) for x in part) for part in np.split(shares, cuts))
    features = SurveyFeatures(questionnaire, blanks, frequencies)
    if theta.shape != (features.n_features,) or not np.isfinite(theta).all():
        raise InvalidProblemError("its weights do not fit its questions.")
    ridge, rho = float(parts["ridge"]), float(parts["rho"])
    calibration = float(parts["calibration"])
    is_checked = not np.isnan(calibration)
    # A factor below zero would reverse the ranking of all pairs.
    bad_factor = is_checked and not (np.isfinite(calibration) and calibration > 0)
    if not (np.isfinite(ridge) and ridge > 0 and 0 <= rho <= 1) or bad_factor:
        raise InvalidProblemError("its settings are out of range.")
    if not all(min(part) >= 0 and abs(sum(part) - 1) <= SHARES_SUM for part in frequencies):
        raise InvalidProblemError("its shares of answers do not sum to 1.")
    method = str(parts[_LATER_PART]) if _LATER_PART in parts else ""
    model = make_roommate_model(theta, features, ridge, rho, method)
    return model.with_calibration(calibration) if is_checked else model
