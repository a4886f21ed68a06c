"""CSV files that the roommates verb writes: pairs, surveys and weights."""

import csv
from collections.abc import Sequence
from pathlib import Path

from engine.core.arguments import FloatArray, IntArray
from engine.crf.survey import BLANK, Survey
from engine.crf.survey_features import SurveyFeatures


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a CSV file with ``\\n`` line ends."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_survey_csv(path: Path, survey: Survey) -> None:
    """Write a survey that ``read_survey_csv`` reads back; blanks as empty cells."""
    questions = survey.questionnaire.questions
    extra = [name for name in survey.attributes if name not in survey.questionnaire.names]
    header = ["id", *survey.questionnaire.names, *extra]
    rows = []
    for k, student in enumerate(survey.ids):
        codes = survey.answers[k].tolist()
        answers = [
            "" if code == BLANK else question.levels[code]
            for question, code in zip(questions, codes, strict=True)
        ]
        rows.append([student, *answers, *(survey.attributes[name][k] for name in extra)])
    write_rows(path, header, rows)


def write_pairs_csv(
    path: Path,
    survey: Survey,
    pairs: IntArray,
    scores: FloatArray | None = None,
    probabilities: FloatArray | None = None,
) -> None:
    """Write student_a,student_b and, if given, score (nats) and probability."""
    header = ["student_a", "student_b"]
    columns: list[list[object]] = [[survey.ids[i] for i in pairs[:, k].tolist()] for k in (0, 1)]
    if scores is not None:
        header.append("score")
        columns.append([f"{x:.6f}" for x in scores])
    if probabilities is not None:
        header.append("probability")
        columns.append([f"{x:.6g}" for x in probabilities])
    write_rows(path, header, list(zip(*columns, strict=True)))


def write_weights_csv(path: Path, features: SurveyFeatures, theta: FloatArray) -> None:
    """Write question,feature,answer_a,answer_b,weight: one line per entry of theta, nats."""
    rows: list[list[object]] = []
    for index, question in enumerate(features.questionnaire.questions):
        start, stop = features.feature_offsets[index : index + 2]
        names: list[tuple[str, str, str]] = [("distance", "", "")]
        for low in range(question.n_levels):
            for high in range(low, question.n_levels):
                names.append(("pair", question.levels[low], question.levels[high]))
        if features.has_blanks[index]:
            names += [("one blank", "", ""), ("both blank", "", "")]
        weights = theta[start:stop].tolist()
        rows += [
            [question.name, *name, repr(weight)]
            for name, weight in zip(names, weights, strict=True)
        ]
    write_rows(path, ["question", "feature", "answer_a", "answer_b", "weight"], rows)
