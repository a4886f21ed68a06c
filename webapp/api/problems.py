"""Errors of the API: RFC 9457 problem details, each with one sentence."""

from http import HTTPStatus

from django.http import JsonResponse

from webapp.common.error_views import RETRY_SECONDS


class Problem(Exception):
    """A refusal. ``sentence`` is for people, ``problems`` lists further problems.

    ``retry_after`` is the number of seconds after which another try makes sense.
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        problems: list[str] | None = None,
        *,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.problems = status, sentence, problems or []
        self.retry_after = retry_after
        if retry_after is None and status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.retry_after = RETRY_SECONDS


def problem_response(problem: Problem) -> JsonResponse:
    """Return a refusal as a response of type application/problem+json."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.sentence,
    }
    if problem.problems:
        body["problems"] = problem.problems
    response = JsonResponse(body, status=problem.status, content_type="application/problem+json")
    if problem.retry_after is not None:
        response["Retry-After"] = str(problem.retry_after)
    if problem.status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="Bethe Hall"'
    return response
