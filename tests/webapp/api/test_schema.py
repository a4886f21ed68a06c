"""What the document allows is never answered with an error of ours; the long form is in benchmarks.

Each request is drawn by schemathesis from the document, with ids of things that there are.
"""

import json
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from benchmarks.hunts.api_schema import key_of, make_keys, try_document, with_keys
from webapp.accounts.models import User
from webapp.api.openapi import PREFIX, openapi_document
from webapp.api.registry import endpoints
from webapp.api.services import token_create

# Parameters that name a form of the answer, not a thing.
WORDS = {"shape", "kind", "file_format"}


@pytest.mark.every_database
def test_no_documented_request_is_answered_with_an_error_of_ours(carol: User) -> None:
    keys = make_keys(carol)
    unknown = {
        name
        for entry in endpoints()
        for name in entry.path_parameters
        if name not in WORDS and key_of(name, entry.path, keys) is None
    }
    assert unknown == set()
    _, secret = token_create(user=carol, name="schema", may_change=True, days=1)
    findings, statuses = try_document(
        secret, with_keys(openapi_document(), keys), examples=1, first_seed=1
    )
    assert findings == []
    assert statuses.total() >= len(endpoints())
    assert {("GET", 200), ("POST", 422), ("DELETE", 204)} <= set(statuses)


def filled(schema: dict[str, Any], parts: dict[str, Any], text: str, number: int) -> Any:
    """Return what a schema allows, with this for every text and that for every number."""
    if "$ref" in schema:
        return filled(parts[schema["$ref"].rpartition("/")[2]], parts, text, number)
    if "anyOf" in schema:
        return filled(schema["anyOf"][0], parts, text, number)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            own = schema.get("properties", {})
            return {name: filled(one, parts, text, number) for name, one in own.items()}
        case "array":
            return [filled(schema.get("items", {}), parts, text, number)]
        case "integer" | "number":
            return number
        case "boolean":
            return True
        case _:
            return schema.get("const", text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("\x00", 1),
        ("x", 10**30),
        pytest.param("x", -(10**30), marks=pytest.mark.any_database),
        ("x", 2**63),
        ("x", 2**31),
        ("\ud800", 1),
    ],
)
@pytest.mark.every_database
def test_no_text_and_no_number_of_a_body_fails(carol: User, text: str, number: int) -> None:
    keys = make_keys(carol)
    document = with_keys(openapi_document(), keys)
    _, secret = token_create(user=carol, name="schema", may_change=True, days=1)
    client = Client(raise_request_exception=False, headers={"authorization": f"Bearer {secret}"})
    failed, n_sent = [], 0
    for path, operations in document["paths"].items():
        for method in ("post", "put", "patch"):
            content = operations.get(method, {}).get("requestBody", {}).get("content", {})
            if "application/json" not in content:
                continue
            schema = content["application/json"]["schema"]
            body = filled(schema, document["components"]["schemas"], text, number)
            address = PREFIX + path
            for name in keys | {"model_id": "", "image_id": ""}:
                address = address.replace(f"{{{name}}}", key_of(name, path, keys) or "1")
            with transaction.atomic():
                answer = client.generic(
                    method.upper(), address, json.dumps(body), content_type="application/json"
                )
                transaction.set_rollback(True)
            n_sent += 1
            if answer.status_code >= 500:
                failed.append(f"{method} {path} {answer.status_code}")
    assert failed == []
    assert n_sent > 20
