"""The audit lines about one student: who looked, who changed what. For administrators."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q, QuerySet, TextField
from django.db.models.functions import Cast

from webapp.audit.models import AuditLine
from webapp.cohorts.models import Student
from webapp.cohorts.naming import LOOKED
from webapp.housing.models import Placement
from webapp.surveys.models import Participant

SHOWN = 100  # latest lines that name the student
EXPORTED = "exported"
LETTERS = ("sent letters", "sent letters again", "stopped letters", "noted bounces")


@dataclass(frozen=True, slots=True)
class Looks:
    """Looks at lists and files, and acts on letters, that concern the student among others."""

    username: str
    verb: str
    count: int
    last: datetime


@dataclass(frozen=True, slots=True)
class StudentAudit:
    """The latest lines that name a student, and the looks at lists of the same cohorts."""

    lines: tuple[AuditLine, ...]
    looks: tuple[Looks, ...]
    has_more: bool


def audit_of(students: Sequence[Student]) -> StudentAudit:
    """Return the audit lines about one person, given as the student of each year.

    Lines name students by the id on screen. In organisations from before ids were unique, the
    object of a line distinguishes an id of one cohort from the same id of another.
    """
    organisation = students[0].cohort.organisation_id
    about = AuditLine.objects.filter(organisation=organisation, is_of_installation=False)
    cohorts = {student.cohort_id for student in students}
    within = {str(key) for key in cohorts}
    placements = Placement.objects.filter(cohort__in=cohorts)
    within |= {str(key) for key in placements.values_list("pk", flat=True)}
    people, asked = _answers_of(students)
    within |= asked
    numbers = {student.number for student in students}
    lines = list(_naming(about, numbers, within, people))
    looks = (
        about.filter(verb__in=(LOOKED, EXPORTED, *LETTERS), target_id__in=within)
        .order_by()
        .values("username", "verb")
        .annotate(count=Count("pk"), last=Max("created_at"))
        .order_by("-last")
    )
    return StudentAudit(
        tuple(lines[:SHOWN]), tuple(Looks(**row) for row in looks), len(lines) > SHOWN
    )


def _answers_of(students: Sequence[Student]) -> tuple[set[int], set[str]]:
    """Return the keys of a person's answers, and of the questionnaires of the person's cohorts."""
    rows = Participant.objects.filter(cohort__in={student.cohort_id for student in students})
    asked = {str(key) for key in rows.values_list("questionnaire", flat=True).distinct()}
    own = {text for one in students for text in (one.original_id, one.email) if text}
    is_own = Q(identifier__in=own) | Q(email__in=own) | Q(code__in=own)
    return set(rows.filter(is_own).values_list("pk", flat=True)), asked


def _naming(
    about: QuerySet[AuditLine], numbers: Iterable[int], within: set[str], people: set[int]
) -> Iterable[AuditLine]:
    """Yield the latest lines that name one of the ids on screen or the answers of the person.

    At most one more than are shown.
    """
    is_named = Q()
    for number in numbers:
        is_named |= Q(text__contains=f"S-{number}")
    for key in people:
        is_named |= Q(text__contains=str(key), target_id__in=within)
    whole = re.compile("|".join(rf"\bS-{number}\b" for number in numbers))
    rows = about.annotate(text=Cast("details", TextField())).filter(is_named)
    rows = rows.filter(Q(target_id__in=within) | Q(target_id=""))
    count = 0
    for line in rows.order_by("-created_at", "-pk").iterator(SHOWN):
        if whole.search(json.dumps(line.details)) or _is_about(line.details, people):
            yield line
            count += 1
        if count > SHOWN:
            return


def _is_about(details: Mapping[str, Any], people: set[int]) -> bool:
    """Return True if the details of a questionnaire's line name the answers of a person."""
    named = details.get("people")
    keys = {*(named if isinstance(named, list) else ()), details.get("person")}
    return bool(keys & people)
