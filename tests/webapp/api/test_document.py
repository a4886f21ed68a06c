"""The document describes what there is, and the page shows it."""

import json

from jsonschema import Draft202012Validator

from tests.webapp.roles import Page, Part
from webapp.api.openapi import WHAT_IT_DOES, openapi_document
from webapp.api.registry import endpoints
from webapp.api.urls import urlpatterns


def test_it_names_its_version_and_is_plain_json() -> None:
    document = json.loads(json.dumps(openapi_document()))
    assert document["openapi"] == "3.1.0"
    assert document["security"] == [{"token": []}]


def test_it_promises_what_there_is_and_says_what_there_is_not() -> None:
    assert openapi_document()["info"]["description"].startswith(WHAT_IT_DOES)
    promised, _, absent = WHAT_IT_DOES.partition(" Writing")
    paths = {(entry.method, entry.path) for entry in endpoints()}
    for word, path in {
        "invite to questionnaires": "/questionnaires/{questionnaire_id}/people",
        "import": "/cohorts",
        "learn": "/roommate-models",
        "propose": "/proposals/{proposal_id}/propose",
        "decide": "/proposals/{proposal_id}/pairs/{pair_id}/decision",
        "predict": "/predictions",
        "place": "/placements",
        "swap": "/proposals/{proposal_id}/swaps",
        "change rules": "/proposals/{proposal_id}/rules",
        "undo": "/proposals/{proposal_id}/events/{event_id}/undo",
        "check models": "/roommate-models/{model_id}/check",
        "placements": "/placements/{placement_id}/checks",
        "publish": "/placements/{placement_id}/publish",
        "write letters": "/letters",
    }.items():
        assert word in promised
        assert ("POST", path) in paths
    assert "export" in promised
    assert ("GET", "/proposals/{proposal_id}/export/{file_format}") in paths
    assert ("DELETE", "/cohorts/{cohort_id}") not in paths
    assert "purging cohorts" in absent
    assert "people of the organisation" in absent
    assert not any(path.startswith("/people") for _, path in paths)
    assert absent.startswith(" questionnaires")
    assert ("POST", "/questionnaires") not in paths


def test_every_endpoint_stands_under_a_subject_that_is_explained() -> None:
    explained = {tag["name"] for tag in openapi_document()["tags"]}
    assert {entry.tag for entry in endpoints()} == explained


def test_every_schema_is_a_schema() -> None:
    for name, schema in openapi_document()["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema), name


def references(value) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*(references(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(references(item) for item in value))
    return set()


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    document = openapi_document()
    found = references(document)
    for reference in found:
        place = document
        for piece in reference.removeprefix("#/").split("/"):
            place = place[piece]
    schemas = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert schemas <= found


def test_operations_have_names_of_their_own() -> None:
    names = [entry.operation_id for entry in endpoints()]
    assert len(names) == len(set(names))


def test_every_declared_path_has_an_address() -> None:
    routes = {str(pattern.pattern) for pattern in urlpatterns}
    for entry in endpoints():
        assert f"v1/{entry.route}" in routes


def test_path_parameters_are_documented() -> None:
    for path, methods in openapi_document()["paths"].items():
        for operation in methods.values():
            in_path = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
            assert in_path == {piece[1:-1] for piece in path.split("/") if piece[:1] == "{"}


def test_the_page_shows_every_operation(client_of, alice) -> None:
    page = Page(client_of(alice).get("/api/"))
    for entry in endpoints():
        (shown,) = page.element.xpath(f"//details[@id='{entry.operation_id}']")
        assert Part(shown).name


def test_the_document_needs_a_sign_in(client, client_of, alice, db) -> None:
    assert client.get("/api/openapi.json").status_code == 302
    answer = client_of(alice).get("/api/openapi.json")
    assert json.loads(answer.content)["info"]["title"] == "Bethe Hall"
