"""Features of single pairs of students, for results that need more than Z^T tau Z."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.crf.survey_features import SurveyFeatures, distance_table


def expected_pair_features(
    features: SurveyFeatures, codes: IntArray, expected: FloatArray, only: int | None = None
) -> FloatArray:
    """Return M, shape (n, K): the expected features of each student's pair.

    ``codes`` (n, Q); ``expected`` (n, D) = tau Z, the expected answers of the partner; ``only``
    limits the result to one question.
    """
    out = np.zeros((len(codes), features.n_features))
    rows = np.arange(len(codes))
    for q in range(features.questionnaire.n_questions) if only is None else (only,):
        start, stop = features.column_offsets[q : q + 2]
        for column in range(start, stop):
            other = np.full(len(codes), column)
            places, values = question_features(features, q, codes[:, q], other)
            for k in range(2):
                out[rows, places[:, k]] += values[:, k] * expected[:, column]
    return out


def pair_features(
    features: SurveyFeatures, first: IntArray, second: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return the features of some pairs from their columns of Z: indices and values, (p, 2 Q)."""
    parts = [
        question_features(features, q, first[:, q], second[:, q])
        for q in range(features.questionnaire.n_questions)
    ]
    places = np.concatenate([part[0] for part in parts], axis=1)
    return places, np.concatenate([part[1] for part in parts], axis=1)


def question_features(
    features: SurveyFeatures, question: int, first: IntArray, second: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return the two features of some pairs for one question: indices and values, (p, 2).

    The distance, and the indicator of the two answers. ``first``, ``second`` (p,): columns of Z.
    """
    asked = features.questionnaire.questions[question]
    levels, base = asked.n_levels, int(features.feature_offsets[question])
    a = first - features.column_offsets[question]
    b = second - features.column_offsets[question]
    low, high = np.minimum(a, b), np.maximum(a, b)
    table = np.zeros((levels + 1, levels + 1))
    table[:levels, :levels] = distance_table(asked)
    places, values = np.full((len(low), 2), base), np.ones((len(low), 2))
    places[:, 1] += 1 + low * levels - low * (low - 1) // 2 + high - low
    values[:, 0] = table[low, high]
    blank = high == levels
    if features.has_blanks[question]:
        end = int(features.feature_offsets[question + 1])
        places[blank, 1] = np.where(low[blank] == levels, end - 1, end - 2)
    else:
        places[blank, 1] = base
        values[blank, 1] = 0.0
    return places, values
