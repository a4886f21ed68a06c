"""Roommate models with weights set by staff, for a first year without past choices."""

from collections.abc import Mapping

import numpy as np

from engine.core.errors import InvalidProblemError
from engine.crf.survey import Survey
from engine.crf.survey_features import distance_table, make_survey_features
from engine.learning.roommates.model import RoommateModel, make_roommate_model

LARGEST = 10.0  # nats: a factor of e^10 on the odds is beyond any sensible setting


def set_roommate_weights(survey: Survey, importance: Mapping[str, float]) -> RoommateModel:
    """Build a roommate model from a given importance of each question.

    Two students whose answers to question q are farthest apart score ``importance[q]`` nats less
    than two who answer alike; in between, in proportion to the distance. Nothing is learned, so the
    model has no certificate, and its probabilities reflect the settings, not observations.

    Parameters
    ----------
    survey : Survey, source of the model's questions, and of the shares of answers for blanks.
    importance : mapping of question to nats
        Above zero: alike is better. Below zero: unlike is better. A question left out counts 0.

    Returns
    -------
    RoommateModel

    Raises
    ------
    InvalidProblemError
        If a question is unknown, or a number is not finite or beyond +-10.

    Examples
    --------
    >>> import numpy as np
    >>> from engine import Question, Questionnaire, Survey
    >>> from engine.learning.roommates.set_weights import set_roommate_weights
    >>> asked = Questionnaire((Question("Bedtime", "ordinal", ("10", "11", "12")),))
    >>> survey = Survey(("a", "b", "c"), asked, np.array([[0], [1], [2]]))
    >>> set_roommate_weights(survey, {"Bedtime": 2.0}).scores(survey)[0].round(6).tolist()
    [0.0, -1.0, -2.0]
    """
    features = make_survey_features([survey])
    questions = features.questionnaire.questions
    unknown = set(importance) - {question.name for question in questions}
    if unknown:
        raise InvalidProblemError(f"{sorted(unknown)[0]} is not a question of this survey.")
    theta = np.zeros(features.n_features)
    for index, question in enumerate(questions):
        value = float(importance.get(question.name, 0.0))
        if not -LARGEST <= value <= LARGEST:
            raise InvalidProblemError(
                f"{question.name}: an importance lies between -{LARGEST:.0f} and {LARGEST:.0f}."
            )
        farthest = float(distance_table(question).max(initial=0.0)) or 1.0
        theta[features.feature_offsets[index]] = -value / farthest + 0.0
    return make_roommate_model(theta, features, ridge=1.0, rho=1.0)
