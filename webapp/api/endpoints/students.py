"""Endpoints for students: the list of a cohort, and the search of the organisation."""

from collections.abc import Sequence
from uuid import UUID

from webapp.api.dispatch import read_query
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import students as shapes
from webapp.api.shapes.base import Page
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import Identity, Search, directory_of, may_see_names
from webapp.common.selectors import get_owned_or_404
from webapp.students.rooms import rooms_in_words
from webapp.students.search import find_students

TAG = "Students"
Found = Sequence[tuple[Cohort, Identity]]


def _page(request: Request, query: shapes.StudentQuery, found: Found) -> Page[shapes.Student]:
    with_names = may_see_names(request.user)
    shown = found[query.offset : query.offset + query.limit]
    rooms = rooms_in_words([(cohort, one.number) for cohort, one in shown])
    if with_names and shown:
        labels = [one.label for _, one in shown]
        audit(request.user, "searched for students", "students", found=labels, count=len(found))
    return Page[shapes.Student](
        items=[
            shapes.Student.seen(
                cohort, one, rooms.get((cohort.pk, one.number), ""), with_names=with_names
            )
            for cohort, one in shown
        ],
        total=len(found),
        limit=query.limit,
        offset=query.offset,
    )


@endpoint(
    "GET",
    "/students",
    tag=TAG,
    summary="Find students in all cohorts",
    description="Viewers find students by the id on screen only, and get no names. Every look at "
    "names is in the audit log.",
    query=shapes.StudentQuery,
)
def search_students(request: Request) -> Page[shapes.Student]:
    """Return the students that a text means, each person once, of the latest cohort."""
    query = read_query(request, shapes.StudentQuery)
    found = find_students(request.user, query.q) if query.q.strip() else []
    return _page(request, query, found)


@endpoint(
    "GET",
    "/cohorts/{cohort_id}/students",
    tag=TAG,
    summary="List the students of a cohort",
    query=shapes.StudentQuery,
)
def list_students(request: Request, cohort_id: UUID) -> Page[shapes.Student]:
    """Return the students of a cohort by id on screen, or those that a text means."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    query = read_query(request, shapes.StudentQuery)
    if query.q.strip():
        people = Search(query.q).find(cohort, by_name=may_see_names(request.user))
    else:
        people = list(directory_of(cohort).by_number.values())
    return _page(request, query, [(cohort, one) for one in people])
