"""Views of the API documentation and of tokens."""

import json
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.models import Role
from webapp.accounts.requests import SignedInRequest
from webapp.api.forms import TokenForm
from webapp.api.models import ApiToken
from webapp.api.openapi import PREFIX, WHAT_IT_DOES, openapi_document
from webapp.api.services import token_create, token_revoke
from webapp.common.decorators import viewer_required
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import toast


@require_safe
@viewer_required
def docs(request: SignedInRequest) -> HttpResponse:
    """Show every endpoint with its parameters, bodies and answers."""
    document = openapi_document()
    context = {
        "document": document,
        "what_it_does": WHAT_IT_DOES,
        "groups": _groups(document),
        "schemas": [
            {"name": name, "text": json.dumps(schema, indent=2, ensure_ascii=False)}
            for name, schema in sorted(document["components"]["schemas"].items())
        ],
        "base": request.build_absolute_uri(PREFIX),
    }
    return render(request, "api/docs.html", context)


def _groups(document: dict[str, Any]) -> list[dict[str, Any]]:
    groups = {tag["name"]: {**tag, "operations": []} for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups[operation["tags"][0]]["operations"].append(
                {"method": method.upper(), "path": path, **_shown(operation)}
            )
    return list(groups.values())


def _shown(operation: dict[str, Any]) -> dict[str, Any]:
    """Return one operation as the page shows it."""
    body = operation.get("requestBody", {}).get("content", {})
    answers = []
    for code, answer in operation["responses"].items():
        content = answer.get("content", {})
        first: dict[str, Any] = next(iter(content.values()), {})
        schema = first.get("schema", {})
        answers.append(
            {
                "code": code,
                "media_type": next(iter(content), ""),
                "schema": schema.get("$ref", "").rpartition("/")[2],
            }
        )
    json_body = body.get("application/json", {}).get("schema", {}).get("$ref", "")
    form = body.get("multipart/form-data", {}).get("schema", {})
    return {
        "id": operation["operationId"],
        "summary": operation["summary"],
        "description": operation["description"],
        "parameters": operation["parameters"],
        "body": json_body.rpartition("/")[2],
        "form": list(form.get("properties", {})),
        "answers": [answer for answer in answers if int(answer["code"]) < 300],
        "refusals": [answer["code"] for answer in answers if int(answer["code"]) >= 300],
    }


@require_safe
@viewer_required
def openapi(request: SignedInRequest) -> HttpResponse:
    """Return the OpenAPI document, for generators of clients."""
    return JsonResponse(openapi_document(), json_dumps_params={"ensure_ascii": False})


@keeps_typed
@require_http_methods(["GET", "POST"])
@viewer_required
def tokens(request: SignedInRequest) -> HttpResponse:
    """List the tokens and create one, whose secret is shown once."""
    form = TokenForm.typed(request)
    secrets: list[str] = []

    def act(*, days: str, **fields: Any) -> None:
        lifetime = int(days) if days else None
        secrets.append(token_create(user=request.user, days=lifetime, **fields)[1])

    if form.submit(request, act):
        form = TokenForm()
    context = {
        "form": form,
        "secret": "".join(secrets),
        "tokens": _visible_tokens(request),
        "base": request.build_absolute_uri(PREFIX),
    }
    response = render(request, "api/tokens.html", context, status=form.status)
    response["Cache-Control"] = "no-store"
    return response


def _visible_tokens(request: SignedInRequest) -> Any:
    """Return the user's own tokens; for administrators, all tokens of the organisation."""
    found = owned_by(ApiToken, request.user).select_related("user")
    if request.user.has_role(Role.ADMINISTRATOR):
        return found
    return found.filter(user=request.user)


@require_POST
@viewer_required
def token_revoke_view(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Revoke a token at once."""
    token = get_owned_or_404(_visible_tokens(request), request.user, uuid)
    token_revoke(user=request.user, token=token)
    toast(request, f"The token “{token.name}” was revoked. It opens nothing any more.")
    return redirect("api:tokens")
