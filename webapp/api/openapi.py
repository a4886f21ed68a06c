"""The OpenAPI 3.1 document, made from the declared endpoints."""

from functools import cache
from http import HTTPStatus
from typing import Any

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from webapp.accounts.models import Role
from webapp.api import endpoints as declared  # noqa: F401 - importing it declares the endpoints
from webapp.api.registry import Endpoint, Shape, by_path, endpoints
from webapp.api.shapes.base import Problem

VERSION = "1.0.0"
PREFIX = "/api/v1"

_TAGS = {
    "Jobs": "Long computations: where they stand, how they converge, how to stop them.",
    "Image sets": "Images of one kind of thing, with the masks that show where it is.",
    "Image models": "Models that learned from masked images.",
    "Predictions": "Masks and probabilities that a model gave to a set.",
    "Questionnaires": "Invitations, reminders, answers, and cohorts made of the answers.",
    "Students": "Names and rooms of students, for people who may see names.",
    "Roommates": "Cohorts with their past pairs, and models of what students chose.",
    "Proposals": "Placements of a cohort in pairs, decisions about them, exports.",
    "Buildings": "Halls, rooms and beds of one campus.",
    "Terms": "Terms with their days, and the days of a student's bed.",
    "Needs": "Needs in the words of students, and the rooms that meet them.",
    "Room choice": "Rounds in which students choose rooms, to read.",
    "Requests": "Requests of students to live together, and their preferred halls.",
    "Placements": "Cohorts in rooms: scenarios, decisions, late changes, publishing, rosters.",
    "Reports": "Evidence behind a placement's numbers, figures for each hall, your own rosters.",
    "Letters": "Letters to students about their published rooms.",
    "Webhooks": "Addresses of programs that receive events.",
}
WHAT_IT_DOES = (
    "The main work of the pages, for programs: invite to questionnaires, import, learn, propose, "
    "place, decide, swap, change rules, undo, check models and placements, publish, write "
    "letters, predict, export. Writing questionnaires, purging cohorts and people of the "
    "organisation are on the pages only."
)
_DESCRIPTION = (
    f"{WHAT_IT_DOES} Make a token on the page “API” and send it as "
    "`Authorization: Bearer bh_…`. Objects of other organisations answer like those that do not "
    "exist. Refusals are problem details (RFC 9457) with one sentence under `detail`."
)
_REFUSALS = {
    "401": "The token is missing, unknown, expired or revoked.",
    "403": "The token or the person may not do this.",
    "404": "There is no such object in this organisation.",
    "429": "A limit is reached; Retry-After tells in how many seconds to try again.",
    "422": "The request cannot be met; the sentence says why.",
}


@cache
def openapi_document() -> dict[str, Any]:
    """Return the whole document as JSON values, which callers must not change."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Bethe Hall", "version": VERSION, "description": _DESCRIPTION},
        "servers": [{"url": PREFIX}],
        "security": [{"token": []}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": {
            path: {entry.method.lower(): operation(entry) for entry in entries}
            for path, entries in by_path()
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
            "responses": {
                f"Refusal{code}": {
                    "description": text,
                    "content": {"application/problem+json": {"schema": _ref(Problem)}},
                }
                for code, text in _REFUSALS.items()
            },
        },
    }


def _schemas() -> dict[str, Any]:
    """Return the schemas of all shapes that endpoints take or return, and of their parts."""
    shapes: dict[tuple[Shape, JsonSchemaMode], None] = {(Problem, "serialization"): None}
    shapes |= {(entry.body, "validation"): None for entry in endpoints() if entry.body}
    shapes |= {(entry.answer, "serialization"): None for entry in endpoints() if entry.answer}
    template = "#/components/schemas/{model}"
    _, found = models_json_schema(list(shapes), ref_template=template)
    # The page of a list has its shape's name (JobPage), not that of its generic type.
    return {
        schema["title"] if name.startswith("Page_") else name: _without_titles(schema)
        for name, schema in sorted(found["$defs"].items())
    }


def _without_titles(schema: Any) -> Any:
    """Return a schema without the titles that Pydantic derives from names; keep a field "title"."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_titles(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def _ref(shape: Shape) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{shape.__name__}"}


def operation(entry: Endpoint) -> dict[str, Any]:
    """Return one operation of the document."""
    found: dict[str, Any] = {
        "operationId": entry.operation_id,
        "tags": [entry.tag],
        "summary": entry.summary,
        "description": _description(entry),
        "parameters": [_path_parameter(entry, name) for name in entry.path_parameters]
        + _query_parameters(entry),
        "responses": {str(entry.status): _success(entry)}
        | {code: {"$ref": f"#/components/responses/Refusal{code}"} for code in _codes(entry)},
    }
    if entry.body:
        content: dict[str, Any] = {"application/json": {"schema": _ref(entry.body)}}
        found["requestBody"] = {"required": True, "content": content}
    elif entry.form:
        schema = {
            "type": "object",
            "properties": entry.form,
            "required": list(entry.required),
        }
        content = {"multipart/form-data": {"schema": schema}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _description(entry: Endpoint) -> str:
    role = Role(entry.role).label.lower()
    token = "Needs a token that may change things, and" if entry.changes else "Needs"
    needs = f"{token} the role {role}." if entry.role != Role.VIEWER else ""
    own = entry.description or (entry.handler.__doc__ or "").strip()
    return f"{own} {needs}".strip()


def _path_parameter(entry: Endpoint, name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": entry.schema_of(name)}


def _query_parameters(entry: Endpoint) -> list[dict[str, Any]]:
    if entry.query is None:
        return []
    schema = entry.query.model_json_schema()
    required = schema.get("required", [])
    found = []
    for name, own in schema["properties"].items():
        words = own.pop("description", "")
        own.pop("title", None)
        found.append(
            {
                "name": name,
                "in": "query",
                "description": words,
                "required": name in required,
                "schema": own,
            }
        )
    return found


def _success(entry: Endpoint) -> dict[str, Any]:
    found: dict[str, Any] = {"description": HTTPStatus(entry.status).phrase}
    if entry.answer:
        found["content"] = {"application/json": {"schema": _ref(entry.answer)}}
    elif entry.media_type:
        schema = {"type": "string", "format": "binary"}
        found["content"] = {entry.media_type: {"schema": schema}}
    return found


def _codes(entry: Endpoint) -> list[str]:
    codes = ["401", "429"]
    if entry.role != Role.VIEWER:
        codes.append("403")
    if entry.path_parameters:
        codes.append("404")
    if entry.body or entry.form or entry.method != "GET":
        codes.append("422")
    return codes
