"""The demonstration: two generated past years with pairs, and a first-year cohort without pairs."""

import csv
import io

import numpy as np

from engine import Survey, simulate_university
from webapp.accounts.models import Organisation, User
from webapp.cohorts.models import Cohort, PairsOrigin
from webapp.cohorts.services.cohorts import cohort_set_pairs
from webapp.cohorts.services.drafts import draft_create
from webapp.cohorts.services.imports import draft_import

STUDENTS = 312
SEED = 2026
PAST_YEARS = ("Returning 2024 (generated)", "Returning 2025 (generated)")
FIRST_YEARS = "First-years 2026 (generated)"
_NAMES = (*PAST_YEARS, FIRST_YEARS)
_NOTE = "Generated for the demonstration: drawn from the model under known weights."


def load(organisation: Organisation, user: User) -> str:
    """Create the missing parts of the demonstration; return one sentence."""
    present = set(
        Cohort.objects.filter(organisation=organisation, name__in=_NAMES).values_list(
            "name", flat=True
        )
    )
    if len(present) == len(_NAMES):
        return "Cohorts of the demonstration are there."
    university = simulate_university(
        STUDENTS, len(_NAMES), rng=np.random.default_rng(SEED), by_gender=True, blank_share=0.01
    )
    for name, year in zip(_NAMES, university.cohorts, strict=True):
        if name not in present:
            pairs = [(int(a), int(b)) for a, b in year.pairs]
            _import(user, name, year.survey, None if name == FIRST_YEARS else pairs)
    return f"Two generated past years with pairs and {STUDENTS} first-years to be paired."


def _import(user: User, name: str, survey: Survey, pairs: list[tuple[int, int]] | None) -> None:
    """Import a survey as an upload, so that the demonstration shows only what the product does."""
    data = survey_as_csv(survey)
    draft = draft_create(user=user, filename="generated.csv", size=len(data), read=lambda: data)
    cohort = draft_import(user=user, draft=draft, name=name, version=draft.version)
    if pairs is not None:
        cohort_set_pairs(
            user=user, cohort=cohort, pairs=pairs, origin=PairsOrigin.SIMULATED, note=_NOTE
        )


def survey_as_csv(survey: Survey) -> bytes:
    """Return a survey as a file that staff would upload."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    questions = survey.questionnaire.questions
    writer.writerow(["student_id", *survey.attributes, *(q.name for q in questions)])
    for k, label in enumerate(survey.ids):
        answers = (
            "" if code < 0 else question.levels[code]
            for question, code in zip(questions, survey.answers[k], strict=True)
        )
        writer.writerow([label, *(column[k] for column in survey.attributes.values()), *answers])
    return buffer.getvalue().encode()
