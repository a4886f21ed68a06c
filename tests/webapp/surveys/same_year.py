"""The year of a questionnaire as Qualtrics' file of it, and what is learned from either.

For the test of a small year, and for ``benchmarks.product.students``, which compares a whole one.
"""

import json
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine import train_roommates
from engine.tabular.choices import Choices
from engine.tabular.preview import build_preview
from engine.tabular.review import Review, review, use_all
from tests.tabular.file_writers import as_csv
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_survey
from webapp.cohorts.services.drafts import draft_create, draft_table, draft_update
from webapp.cohorts.services.imports import draft_import
from webapp.surveys.models import Participant
from webapp.surveys.questions import Question


def as_qualtrics(questions: Sequence[Question], people: Iterable[Participant]) -> bytes:
    """The file as Qualtrics exports it: three header rows, the words of the answers.

    People stand in the order of their last answer; who stopped half-way is there as well.
    """
    own = ["StartDate", "EndDate", "Finished", "ResponseId", "ExternalReference"]
    said = ["Start Date", "End Date", "Finished", "Response ID", "External Data Reference"]
    rows = [
        [*own, *(f"Q{q.number}" for q in questions)],
        [*said, *(q.text for q in questions)],
        [json.dumps({"ImportId": f"QID{k}"}) for k in range(len(own) + len(questions))],
    ]
    answered = [one for one in people if one.updated_at is not None]
    for k, one in enumerate(sorted(answered, key=lambda one: (one.updated_at, one.identifier))):
        words = [q.in_words(one.answers.get(q.key)) for q in questions]
        time = one.updated_at.strftime("%Y-%m-%d %H:%M:%S")
        done = str(one.finished_at is not None)
        who = one.identifier or one.email
        rows.append([time, time, done, f"R_{k * 7919:015x}", who, *words])
    return as_csv(rows, quote_all=True)


def import_file(user: User, data: bytes) -> Cohort:
    """Import as staff do who use all fixes."""
    draft = draft_create(user=user, filename="year.csv", size=len(data), read=lambda: data)
    table = draft_table(draft)

    def again(choices: Choices) -> Review:
        return review(build_preview(table, choices))

    choices = use_all(again(Choices.from_json(draft.choices)), again)
    draft = draft_update(draft=draft, choices=choices.to_json(), version=draft.version)
    return draft_import(user=user, draft=draft, name="By file", version=draft.version)


def scores_of(cohort: Cohort, order: Sequence[str]) -> NDArray[np.float64]:
    """Score of every pair of the people in ``order``, learned from its neighbours as roommates."""
    survey = cohort_survey(cohort)
    row = {
        key: k
        for k, key in enumerate(
            cohort.students.order_by("number").values_list("original_id", flat=True)
        )
    }
    position = np.array([row[key] for key in order])
    trained = train_roommates(
        [(survey, position.reshape(-1, 2))], ridge=100.0, solver="theta", relative_gap=1e-9
    )
    scores: NDArray[np.float64] = trained.model.scores(survey)[np.ix_(position, position)]
    return scores
