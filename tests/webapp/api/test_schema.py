"""What the document allows is never answered with an error of ours; the long form is in benchmarks.

Each request is drawn by schemathesis from the document, with ids of things that there are.
"""

from benchmarks.api_schema import key_of, make_keys, try_document, with_keys
from webapp.accounts.models import User
from webapp.api.openapi import openapi_document
from webapp.api.registry import endpoints
from webapp.api.services import token_create

# Parameters that name a form of the answer, not a thing.
WORDS = {"shape", "kind", "file_format"}


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
