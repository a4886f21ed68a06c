"""The audit lines about one student: who looked, who changed what. For administrators."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q, QuerySet, TextField
from django.db.models.functions import Cast

from webapp.audit.models import AuditLine
from webapp.cohorts.models import Student
from webapp.cohorts.naming import LOOKED
from webapp.housing.models import Placement
from webapp.matching.models import Proposal

SHOWN = 100  # latest lines that name the student
EXPORTED = "exported"


@dataclass(frozen=True, slots=True)
class Looks:
    """Looks of one person at lists and files that hold the student among others."""

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
    for model in (Placement, Proposal):
        found: QuerySet[Any] = model.objects.filter(cohort__in=cohorts)
        within |= {str(key) for key in found.values_list("pk", flat=True)}
    lines = list(_naming(about, {student.number for student in students}, within))
    looks = (
        about.filter(verb__in=(LOOKED, EXPORTED), target_id__in=within)
        .order_by()
        .values("username", "verb")
        .annotate(count=Count("pk"), last=Max("created_at"))
        .order_by("-last")
    )
    return StudentAudit(
        tuple(lines[:SHOWN]), tuple(Looks(**row) for row in looks), len(lines) > SHOWN
    )


def _naming(
    about: QuerySet[AuditLine], numbers: Iterable[int], within: set[str]
) -> Iterable[AuditLine]:
    """Yield the latest lines whose details name one of the ids, at most one more than are shown."""
    is_named = Q()
    for number in numbers:
        is_named |= Q(text__contains=f"S-{number}")
    whole = re.compile("|".join(rf"\bS-{number}\b" for number in numbers))
    rows = about.annotate(text=Cast("details", TextField())).filter(is_named)
    rows = rows.filter(Q(target_id__in=within) | Q(target_id=""))
    count = 0
    for line in rows.order_by("-created_at", "-pk").iterator(SHOWN):
        if whole.search(json.dumps(line.details)):
            yield line
            count += 1
        if count > SHOWN:
            return
