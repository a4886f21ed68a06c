"""How the interface says no: RFC 9457 problem details, one sentence each."""

from http import HTTPStatus

from django.http import JsonResponse

from webapp.common.error_views import RETRY_SECONDS


class Problem(Exception):
    """A refusal. ``sentence`` is for people, ``problems`` lists more of the same."""

    def __init__(self, status: int, sentence: str, problems: list[str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.problems = status, sentence, problems or []


def problem_response(problem: Problem) -> JsonResponse:
    """Return a refusal as application/problem+json."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.sentence,
    }
    if problem.problems:
        body["problems"] = problem.problems
    response = JsonResponse(body, status=problem.status, content_type="application/problem+json")
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        response["Retry-After"] = str(RETRY_SECONDS)
    if problem.status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="Bethe Hall"'
    return response
