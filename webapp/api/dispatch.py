"""Dispatch of API requests: token, rights, handler, errors, JSON."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

import structlog
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import (
    BadRequest,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.http import (
    Http404,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    UnreadablePostError,
)
from django.http.multipartparser import MultiPartParserError
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt
from pydantic import BaseModel, ValidationError

from engine import InfeasibleError, InvalidProblemError
from engine.core.json_text import read_json
from webapp.accounts.models import Role
from webapp.api.problems import Problem, problem_response
from webapp.api.registry import Endpoint, Request
from webapp.api.services import token_find
from webapp.api.shapes.base import Page, Paging, sentence_of
from webapp.common.error_views import AWAY_ADVICE, away_title, is_away
from webapp.common.errors import ConflictError, Refusal
from webapp.common.head_requests import nothing_written_by_head
from webapp.common.limits import TooManyError, count_up, seconds_left
from webapp.database.full_disk import FULL_DISK, FULL_DISK_ADVICE, is_full_disk
from webapp.files.contents import StorageFullError
from webapp.jobs.doubles import SentTwiceError

log = structlog.get_logger(__name__)

MAX_JSON_BYTES = 1024**2
# Raised for a form without a boundary, cut off, with too many fields or in an unknown encoding.
UNREADABLE = (MultiPartParserError, BadRequest, SuspiciousOperation, UnreadablePostError)
S = TypeVar("S", bound=BaseModel)


def view_of(endpoints: Sequence[Endpoint]) -> Any:
    """Return the view of a path; without sessions and cookies it needs no CSRF protection."""
    by_method = {entry.method: entry for entry in endpoints}

    @csrf_exempt
    @login_not_required
    @translation.override("en-gb")  # programs get one language, whichever staff read
    def view(request: Request, **arguments: Any) -> HttpResponseBase:
        try:
            entry = by_method.get("GET" if request.method == "HEAD" else request.method or "")
            _authenticate(request)
            if entry is None:
                return _method_not_allowed(by_method)
            _check_rights(request, entry)
            with nothing_written_by_head(request):
                return _answer(entry, entry.handler(request, **arguments))
        except Exception as error:
            return problem_response(_as_problem(error))

    return view


def _authenticate(request: Request) -> None:
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    token = token_find(secret=secret.strip()) if scheme.lower() == "bearer" else None
    if token is None:
        _refuse_unknown_token(request.META.get("REMOTE_ADDR", ""))
    elif count_up("calls", str(token.pk)) > settings.API_CALLS_A_MINUTE:
        allowed = settings.API_CALLS_A_MINUTE
        raise TooManyError(f"This token may call {allowed} times a minute.", seconds_left())
    request.user, request.api_token = token.user, token


def _refuse_unknown_token(address: str) -> NoReturn:
    """Refuse a call without a valid token; calls with one from the same address still work."""
    if count_up("strangers", address) > settings.API_WRONG_TOKENS_A_MINUTE:
        raise TooManyError("Too many calls without a valid token came from here.", seconds_left())
    raise Problem(401, "Send a valid token: “Authorization: Bearer bh_…”.")


def _check_rights(request: Request, entry: Endpoint) -> None:
    if not request.user.has_role(Role.VIEWER):
        raise Problem(403, "This person belongs to no organisation.")
    if entry.changes and not request.api_token.may_change:
        raise Problem(403, "This token may only read.")
    if not request.user.has_role(entry.role):
        raise Problem(403, f"This needs the role {Role(entry.role).label.lower()}.")


def _answer(entry: Endpoint, result: Any) -> HttpResponseBase:
    if isinstance(result, HttpResponseBase):
        return result
    if result is None:
        return HttpResponse(status=204)
    return JsonResponse(result.model_dump(mode="json"), status=entry.status)


def _method_not_allowed(by_method: dict[str, Endpoint]) -> HttpResponse:
    response = problem_response(Problem(405, "This address has no such method."))
    response["Allow"] = ", ".join(sorted(by_method))
    return response


def _as_problem(error: Exception) -> Problem:
    """Return the Problem for an error of a service; an unexpected error gets no details."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, Http404):
        return Problem(404, "There is no such object.")
    if isinstance(error, PermissionDenied):
        return Problem(403, str(error) or "This is not open to this role.")
    if isinstance(error, StorageFullError):
        return Problem(507, str(error))
    if is_full_disk(error):
        log.error("the disk is full", error=str(error))
        return Problem(507, f"{FULL_DISK} {FULL_DISK_ADVICE}")
    if isinstance(error, SentTwiceError):
        return Problem(409, str(error), [f"The job is {error.job.pk}."])
    if isinstance(error, TooManyError):
        return Problem(429, f"{error} Try again later.", retry_after=error.retry_after)
    if isinstance(error, ConflictError):
        return Problem(409, str(error))
    if isinstance(error, Refusal | InvalidProblemError | InfeasibleError):
        return Problem(422, str(error))
    if isinstance(error, RequestDataTooBig):
        return Problem(413, "The body is larger than is taken.")
    if isinstance(error, UNREADABLE):
        return Problem(400, "The body cannot be read. Send it again, whole.")
    if is_away(error):
        log.warning("database or store away", error=str(error))
        return Problem(503, f"{away_title(error)}. {AWAY_ADVICE}")
    log.exception("api request failed")
    return Problem(500, "Something failed on our side. Nothing was changed.")


def read_body(request: Request, shape: type[S]) -> S:
    """Return the JSON object of a request's body as an instance of a shape.

    Raises
    ------
    Problem
        413 above 1 MB, 400 if it is not a JSON object, 422 if it does not fit the shape.
    """
    if int(request.headers.get("Content-Length") or 0) > MAX_JSON_BYTES:
        raise Problem(413, "The body is larger than 1 MB.")
    try:
        body = read_json(request.body or b"{}")
    except ValueError as error:
        raise Problem(400, "The body is not JSON, or holds what is no text.") from error
    if not isinstance(body, dict):
        raise Problem(400, "The body is not a JSON object.")
    return _in_shape(shape, body)


def read_query(request: Request, shape: type[S]) -> S:
    """Return the query of a request as an instance of a shape; Problem 422 if it does not fit."""
    return _in_shape(shape, request.GET.dict())


def _in_shape(shape: type[S], values: dict[str, Any]) -> S:
    try:
        return shape.model_validate(values)
    except ValidationError as error:
        raise Problem(422, sentence_of(error)) from error


def page_of(request: Request, queryset: Any, shape: type[Any], prepare: Any = None) -> Page[Any]:
    """Return the page of a list that ``limit`` and ``offset`` of the query select.

    ``prepare`` gets the objects of the page and may return others for the shape to read. A shape
    with a class method ``of`` reads each object with it.
    """
    query = read_query(request, Paging)
    rows = list(queryset[query.offset : query.offset + query.limit])
    rows = (prepare(rows) if prepare else None) or rows
    read = getattr(shape, "of", shape.model_validate)
    return Page[shape](  # type: ignore[valid-type]  # a page of a shape known at run time
        items=[row if isinstance(row, shape) else read(row) for row in rows],
        total=queryset.count(),
        limit=query.limit,
        offset=query.offset,
    )
