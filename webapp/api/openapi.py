"""The OpenAPI 3.1 document, made from the declared endpoints."""

from http import HTTPStatus
from typing import Any

from webapp.api import endpoints  # noqa: F401 - importing it declares the endpoints
from webapp.api.registry import Endpoint, by_path
from webapp.api.schemas import SCHEMAS, ref

VERSION = "1.0.0"
PREFIX = "/api/v1"

_TAGS = {
    "Jobs": "Long computations: where they stand, how they converge, how to stop them.",
    "Image sets": "Images of one kind of thing, with the masks that show where it is.",
    "Image models": "Models that learned from masked images.",
    "Predictions": "Masks and probabilities that a model gave to a set.",
    "Roommates": "Cohorts with their past pairs, and models of what students chose.",
    "Proposals": "Pairs proposed for a cohort, decisions about them, exports.",
}
WHAT_IT_DOES = (
    "The main work of the pages, for programs: import, learn, propose, decide, predict, export. "
    "Rules, swaps, undo, checks, purging cohorts and people are on the pages only."
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


def openapi_document() -> dict[str, Any]:
    """Return the whole document as JSON values."""
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
            "schemas": SCHEMAS,
            "responses": {
                f"Refusal{code}": {
                    "description": text,
                    "content": {"application/problem+json": {"schema": ref("Problem")}},
                }
                for code, text in _REFUSALS.items()
            },
        },
    }


def operation(entry: Endpoint) -> dict[str, Any]:
    """Return one operation of the document."""
    found: dict[str, Any] = {
        "operationId": entry.operation_id,
        "tags": [entry.tag],
        "summary": entry.summary,
        "description": _description(entry),
        "parameters": [_path_parameter(name) for name in entry.path_parameters]
        + [
            {"name": q.name, "in": "query", "description": q.description, "schema": q.schema}
            for q in entry.queries
        ],
        "responses": {str(entry.status): _success(entry)}
        | {code: {"$ref": f"#/components/responses/Refusal{code}"} for code in _codes(entry)},
    }
    if entry.body:
        content = {"application/json": {"schema": ref(entry.body)}}
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
    needs = "Needs a token that may change things, and the role staff." if entry.changes else ""
    own = entry.description or (entry.handler.__doc__ or "").strip()
    return f"{own} {needs}".strip()


def _path_parameter(name: str) -> dict[str, Any]:
    schemas: dict[str, dict[str, Any]] = {
        "kind": {"enum": ["mask.png", "marginals.npy", "overlay.png"]},
        "file_format": {"enum": ["csv", "xlsx"]},
        "pair_id": {"type": "integer"},
    }
    schema = schemas.get(name, {"type": "string", "format": "uuid"})
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _success(entry: Endpoint) -> dict[str, Any]:
    found: dict[str, Any] = {"description": HTTPStatus(entry.status).phrase}
    if entry.answer:
        found["content"] = {"application/json": {"schema": ref(entry.answer)}}
    elif entry.media_type:
        schema = {"type": "string", "format": "binary"}
        found["content"] = {entry.media_type: {"schema": schema}}
    return found


def _codes(entry: Endpoint) -> list[str]:
    codes = ["401", "429"]
    if entry.changes:
        codes.append("403")
    if entry.path_parameters:
        codes.append("404")
    if entry.body or entry.form or entry.method == "POST":
        codes.append("422")
    return codes
