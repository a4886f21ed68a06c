"""Protection against a click that arrives twice: it starts one job.

A browser sends a form again when the person reloads the answer or clicks while nothing seems to
happen; a proxy or a program does so after a time limit. Both requests carry the same key. Programs
send it (``Idempotency-Key``); for a form it is made from the token that each page gives its
forms, the address and the fields. The job row keeps the key, so the second request finds the
first one's job, even if processes ended in between.
"""

import hashlib
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from webapp.accounts.requests import HtmxRequest
from webapp.common.toasts import toast
from webapp.jobs.models import Job
from webapp.jobs.registry import title_of

_PAGE_TOKEN_LENGTH = 64  # Django masks its token differently for every page; a bare one is shorter
_handled: ContextVar["_Handled | None"] = ContextVar("handled request", default=None)


@dataclass(slots=True)
class _Handled:
    """Request that this process handles now, and the number of jobs that it started so far."""

    request: HtmxRequest
    jobs_started: int = 0


class SentTwiceError(Exception):
    """Error of a request that started a job already; this copy starts and changes nothing."""

    def __init__(self, job: Job) -> None:
        super().__init__(
            _("“%(job)s” was started by this request already. It was not started twice.")
            % {"job": title_of(job)}
        )
        self.job = job


class DoublesMiddleware:
    """Middleware that leads a person who sent a form twice to the first job."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HtmxRequest) -> HttpResponse:
        """Make the request known to jobs that are started meanwhile."""
        token = _handled.set(_Handled(request))
        try:
            return self.get_response(request)
        finally:
            _handled.reset(token)

    def process_exception(self, request: HtmxRequest, error: Exception) -> HttpResponse | None:
        """Answer a double; the API itself answers programs."""
        if not isinstance(error, SentTwiceError):
            return None
        toast(request, str(error))
        address = reverse("jobs:job", args=[error.job.pk])
        return HttpResponseClientRedirect(address) if request.htmx else redirect(address)


@dataclass(frozen=True, slots=True)
class RequestKey:
    """Key shared by two copies of one request; ``text`` is '' if there is none.

    ``holds`` is the time after a job's creation in which a request of the same key is a double
    even if that job is over.
    """

    text: str = ""
    holds: timedelta = timedelta()


def next_request_key() -> RequestKey:
    """Return the key of the next job that the current request starts."""
    handled = _handled.get()
    if handled is None or not (sent := _sent_key(handled.request)):
        return RequestKey()
    request, number = handled.request, handled.jobs_started
    handled.jobs_started += 1
    text = "\0".join([str(request.user.pk), request.path, sent, str(number)])
    return RequestKey(hashlib.sha256(text.encode()).hexdigest(), _holds(request))


def refuse_double(organisation_id: int, key: RequestKey) -> None:
    """Raise SentTwiceError if the same request started a job already."""
    earlier = Job.objects.filter(organisation_id=organisation_id, request_key=key.text).first()
    if earlier is None:
        return
    if earlier.is_active or timezone.now() - earlier.created_at < key.holds:
        raise SentTwiceError(earlier)
    Job.objects.filter(pk=earlier.pk).update(request_key="")


def _holds(request: HtmxRequest) -> timedelta:
    """Return how long a key means the same action.

    A program's key always does. A form that leads to another page is only sent again by a reload.
    The automatic request of an open page (a painter's new learning after more strokes) is a
    double only while the first job waits or runs.
    """
    if "Idempotency-Key" in request.headers:
        return timedelta.max
    is_navigation = request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    return timedelta(minutes=10) if is_navigation and not request.htmx else timedelta()


def _sent_key(request: HttpRequest) -> str:
    if key := request.headers.get("Idempotency-Key", ""):
        return f"key {key}"
    token = request.POST.get("csrfmiddlewaretoken") or request.headers.get("X-CSRFToken", "")
    if len(token) != _PAGE_TOKEN_LENGTH:
        return ""
    fields = [f"{name}={value!r}" for name, value in sorted(request.POST.lists())]
    files = [
        f"{name}={file.name!r}:{file.size}"
        for name, found in sorted(request.FILES.lists())
        for file in found
    ]
    return "\0".join([token, *fields, *files])
