"""Endpoints for requests, choices and needs of cohorts: import, and solving unclear ones."""

from typing import Any
from uuid import UUID

from django.http import Http404

from webapp.accounts.models import Role
from webapp.api.dispatch import page_of, read_body
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import housing as shapes
from webapp.api.shapes import requests as request_shapes
from webapp.api.shapes.base import Page, Paging, Sentence
from webapp.cohorts.models import Cohort
from webapp.cohorts.student_files import left_out_words
from webapp.common.formats import counted
from webapp.common.selectors import get_owned_or_404
from webapp.housing.forms import read_students
from webapp.housing.models import RoommateRequest
from webapp.housing.selectors.requests import unknown_names
from webapp.housing.services import request_groups
from webapp.housing.services import requests as wishes
from webapp.letters.services.questions import Wording, asked_in_words, questions_ask

TAG = "Requests"
FILE = {"type": "string", "format": "binary", "description": "CSV or XLSX with a header"}


@endpoint(
    "GET",
    "/cohorts/{cohort_id}/requests",
    tag=TAG,
    summary="List requests",
    description="Only staff see the names of a request.",
    query=Paging,
    role=Role.STAFF,
)
def list_requests(request: Request, cohort_id: UUID) -> Page[shapes.RoommateWish]:
    """Return the roommate requests of a cohort."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    rows = RoommateRequest.objects.filter(cohort=cohort).select_related("student", "target")
    return page_of(request, rows, shapes.RoommateWish)


def _file(request: Request) -> dict[str, Any]:
    file = request.FILES.get("file")
    if file is None:
        raise Problem(400, "Send a CSV or XLSX file in the multipart field “file”.")
    return {"filename": file.name, "size": file.size, "read": file.read}


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests",
    tag=TAG,
    summary="Import requests",
    description="A column of students, then one or more columns of their requested roommates.",
    form={"file": FILE},
    required=("file",),
)
def import_requests(request: Request, cohort_id: UUID) -> Sentence:
    """Add the requests of a file to a cohort."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    found = wishes.requests_import(user=request.user, cohort=cohort, **_file(request))
    return Sentence(sentence=found.sentence)


@endpoint("DELETE", "/cohorts/{cohort_id}/requests", tag=TAG, summary="Remove all requests")
def clear_requests(request: Request, cohort_id: UUID) -> Sentence:
    """Remove every request of a cohort."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    count = wishes.requests_clear(user=request.user, cohort=cohort)
    return Sentence(sentence=f"{counted(count, 'request')} removed.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/match",
    tag=TAG,
    summary="Match what has one close id",
)
def match_requests(request: Request, cohort_id: UUID) -> Sentence:
    """Match every unknown request that has exactly one close id."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    count = wishes.requests_match_close(user=request.user, cohort=cohort)
    return Sentence(sentence=f"{counted(count, 'request')} matched.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/cut",
    tag=TAG,
    summary="Leave requests out",
    body=shapes.NewCuts,
)
def cut_requests(request: Request, cohort_id: UUID) -> Sentence:
    """Leave out the requests between pairs of students, in both directions."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    sent = read_body(request, shapes.NewCuts)
    sets = [read_students(pair) for pair in sent.pairs]
    if any(len(students) != 2 for students in sets):
        raise Problem(422, "pairs: two different students each.")
    pairs = [(first, second) for first, second in sets]
    count = wishes.requests_cut(user=request.user, cohort=cohort, pairs=pairs)
    return Sentence(sentence=f"{counted(count, 'request')} left out.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/{request_id}/settle",
    tag=TAG,
    summary="Say whom a request means",
    description="A blank student leaves the request out.",
    body=shapes.NewAnswer,
)
def settle_request(request: Request, cohort_id: UUID, request_id: int) -> Sentence:
    """Match a request with a student, or leave it out."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    if not RoommateRequest.objects.filter(cohort=cohort, pk=request_id).exists():
        raise Http404("There is no such request.")
    answer = read_body(request, shapes.NewAnswer).student
    settled = wishes.request_settle(
        user=request.user, cohort=cohort, request_id=request_id, answer=answer
    )
    target = settled.target
    return Sentence(sentence=f"Means {target.label}." if target else "Left out.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/preferences",
    tag=TAG,
    summary="Import choices of halls",
    description="The student's id, then the choices in their order. Replaces those there are.",
    form={"file": FILE},
    required=("file",),
)
def import_preferences(request: Request, cohort_id: UUID) -> Sentence:
    """Replace the choices of a cohort by those of a file."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    kept, strangers = wishes.preferences_import(user=request.user, cohort=cohort, **_file(request))
    rest = left_out_words(strangers)
    return Sentence(sentence=f"{counted(kept, 'choice')} imported{rest}.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/needs",
    tag=TAG,
    summary="Import what students need",
    description="The needs of students, in words. They replace those of an earlier file; the rules "
    "of a placement say whether the column “Needs” counts.",
    form={"file": FILE},
    required=("file",),
)
def import_needs(request: Request, cohort_id: UUID) -> Sentence:
    """Replace the needs of a cohort by those of a file."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    kept, strangers = wishes.needs_import(user=request.user, cohort=cohort, **_file(request))
    rest = left_out_words(strangers)
    words = counted(kept, "student has a need", "students have needs")
    return Sentence(sentence=f"{words} now{rest}.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/circles",
    tag=TAG,
    summary="Count circles of requests as groups",
)
def close_circles(request: Request, cohort_id: UUID) -> Sentence:
    """Treat all requests within a circle of requests as mutual."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    return Sentence(sentence=request_groups.circles_close(user=request.user, cohort=cohort))


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/themselves",
    tag=TAG,
    summary="Leave out who asked for themselves",
)
def drop_selves(request: Request, cohort_id: UUID) -> Sentence:
    """Leave out every request of a student for themselves."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    left = wishes.requests_drop_selves(user=request.user, cohort=cohort)
    return Sentence(sentence=f"{counted(left, 'request')} left out.")


@endpoint(
    "GET",
    "/cohorts/{cohort_id}/requests/unknown",
    tag=TAG,
    summary="List requests with an uncertain name",
    role=Role.STAFF,
)
def list_unknown_requests(request: Request, cohort_id: UUID) -> request_shapes.UnknownRequests:
    """Return the students that each unknown request may mean, with the reasons."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    found = unknown_names(cohort)
    return request_shapes.UnknownRequests(
        requests=[request_shapes.UnknownRequest.of(one) for one in found]
    )


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/keep",
    tag=TAG,
    summary="Count requests again that were left out",
    body=request_shapes.NewKeeps,
)
def keep_requests(request: Request, cohort_id: UUID) -> Sentence:
    """Count left-out requests again, some or all."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    keys = read_body(request, request_shapes.NewKeeps).requests
    count = wishes.requests_keep(user=request.user, cohort=cohort, keys=keys)
    return Sentence(sentence=f"{counted(count, 'request')} counted again.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/leave-out",
    tag=TAG,
    summary="Leave out requests that match nobody",
)
def leave_out_requests(request: Request, cohort_id: UUID) -> Sentence:
    """Leave out every unknown request that resembles no student of the cohort."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    count = wishes.requests_leave_out(user=request.user, cohort=cohort)
    return Sentence(sentence=f"{counted(count, 'request')} left out.")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/split",
    tag=TAG,
    summary="Split groups that fit no room",
    body=request_shapes.NewSplits,
)
def split_groups(request: Request, cohort_id: UUID) -> Sentence:
    """Split one group or all as proposed; requests between the parts are left out."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    sent = read_body(request, request_shapes.NewSplits)
    student = None if sent.student is None else read_students([sent.student])[0]
    done = request_groups.groups_split(user=request.user, cohort=cohort, student=student)
    return Sentence(sentence=done)


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/impossible",
    tag=TAG,
    summary="Leave out mutual requests that no room allows",
    description="By the rules of the published placement, or of the one that changed last.",
)
def leave_out_impossible(request: Request, cohort_id: UUID) -> Sentence:
    """Leave out the requests among people whom no room can take together."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    return Sentence(sentence=request_groups.impossible_leave_out(user=request.user, cohort=cohort))


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/requests/ask",
    tag=TAG,
    summary="Ask students whom their requests mean",
    description="One mail to each who asked. It says what they typed, and nothing of others.",
    body=request_shapes.NewQuestions,
    status=202,
)
def ask_students(request: Request, cohort_id: UUID) -> Sentence:
    """Queue a mail about each unknown request."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    sent = read_body(request, request_shapes.NewQuestions)
    count = questions_ask(
        user=request.user,
        cohort=cohort,
        wording=Wording(sent.subject, sent.text, sent.reply_to),
        requests=sent.requests,
        seen=sent.times_asked,
    )
    return Sentence(sentence=asked_in_words(count))
