"""Programs with tokens, and a check that answers have the documented shape."""

import json
from typing import Any

from django.test import Client
from jsonschema import Draft202012Validator

from webapp.accounts.models import User
from webapp.api.openapi import PREFIX, openapi_document
from webapp.api.services import token_create

DOCUMENT = openapi_document()


class Program:
    """A client with a token; every answer is held against the document."""

    def __init__(self, secret: str) -> None:
        self._client = Client()
        self._headers = {"authorization": f"Bearer {secret}"}

    def call(self, method: str, path: str, body: Any = None, **form: Any) -> Any:
        """Call an endpoint; return the response with ``data`` where it is JSON."""
        options: dict[str, Any] = {"headers": self._headers}
        if form:
            options["data"] = form
        elif body is not None:
            options |= {"data": json.dumps(body), "content_type": "application/json"}
        response = getattr(self._client, method.lower())(PREFIX + path, **options)
        if "json" in response.get("Content-Type", ""):
            response.data = json.loads(response.content)
        check_shape(method, path.partition("?")[0], response)
        return response

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def post(self, path: str, body: Any = None, **form: Any) -> Any:
        return self.call("POST", path, body, **form)

    def delete(self, path: str) -> Any:
        return self.call("DELETE", path)


def template_of(path: str) -> str | None:
    """The documented path that an address belongs to."""
    pieces = path.split("/")
    for template in DOCUMENT["paths"]:
        wanted = template.split("/")
        if len(wanted) == len(pieces) and all(
            a == b or a.startswith("{") for a, b in zip(wanted, pieces, strict=True)
        ):
            return template
    return None


def check_shape(method: str, path: str, response: Any) -> None:
    """Fail when a status or a body is not what the document promises."""
    template = template_of(path)
    operation = DOCUMENT["paths"].get(template, {}).get(method.lower())
    if response.status_code >= 400:
        validate(response.data, {"$ref": "#/components/schemas/Problem"})
        return
    assert operation, f"{method} {path} is not documented"
    assert str(response.status_code) in operation["responses"], response.status_code
    content = operation["responses"][str(response.status_code)].get("content", {})
    schema = content.get("application/json", {}).get("schema")
    if schema:
        validate(response.data, schema)


def validate(value: Any, schema: dict[str, Any]) -> None:
    """Hold a value against a schema of the document."""
    whole = {**schema, "components": DOCUMENT["components"]}
    errors = [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in Draft202012Validator(whole).iter_errors(value)
    ]
    assert not errors, errors


def make_program(user: User, *, may_change: bool = True, days: int | None = 30) -> Program:
    """Return a program that acts for a person."""
    _, secret = token_create(user=user, name="sync", may_change=may_change, days=days)
    return Program(secret)
