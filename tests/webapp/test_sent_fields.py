"""Fields of sent forms: read by forms, and a hostile value is refused in one sentence."""

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.messages import ERROR, get_messages
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from lxml import html

from tests.webapp.factories.page_addresses import expect_no_broker
from tests.webapp.test_addresses import written_tables
from webapp.accounts.models import Organisation, User
from webapp.cohorts.models import Cohort
from webapp.common.forms import NO_ACTION, OLD_PAGE
from webapp.housing.building_forms import NO_STATE
from webapp.housing.decision_forms import NO_DECISION
from webapp.housing.models import BuildingList, Placement, Room
from webapp.matching.forms import GONE
from webapp.matching.models import LearnedModel
from webapp.surveys.services.clashes import NOT_CHOSEN

WEBAPP = Path(__file__).resolve().parents[2] / "webapp"
# The functions that read `request.POST` without a form, each with the reason.
RAW = {
    "common/acts.py passed_on": "the act alone, to repeat the POST at the address of its form",
    "common/middleware.py process_view": "every field, for zero bytes",
    "common/kept_forms.py keep": "every field, kept while a person signs in again",
    "common/kept_forms.py sent_fields": "handed to the caller's form",
    "common/forms.py typed": "handed to the form itself",
    "jobs/doubles.py _sent_key": "every field, as the key of a form that is sent twice",
    "surveys/views/student_pages.py _fields": "every field, shown again on an error page",
    "cohorts/views/drafts.py draft_change": "one form of many buttons; the engine checks the act",
    "identity/views/providers.py back_channel": "one signed token, checked by the library",
    "accounts/guesses.py locked_name": "the name of a failed sign-in, to count it",
    "accounts/views.py post": "the name of a sign-in, before Django's own form reads it",
    "api/endpoints/images.py upload_image_files": "one documented part of a multipart body",
    "api/endpoints/buildings.py create_buildings": "one documented part of a multipart body",
    "api/endpoints/roommates.py import_cohort": "one documented part of a multipart body",
}
NO_NUMBER = ("-1", "inf", "1e400", "9" * 5000, ["1", "abc"], "²")
NO_MEMBER = ("nonsense", "9" * 5000, ["accept", "nonsense"])
# Address, the fields as a page sends them, the field that is replaced, and the sentence.
NUMBERS = [
    ("housing:placement-compute", {"minutes": "5"}, "minutes"),
    ("housing:placement-solve", {"clash": "0", "leave": "requests"}, "clash"),
    ("housing:placement-publish", {"version": "0"}, "version"),
    ("housing:placement-publish", {"action": "withdraw", "people": "3"}, "people"),
    ("housing:placement-decide", {"act": "accept", "room": "1", "version": "0"}, "room"),
    ("housing:placement-decide", {"act": "accept", "room": "1", "version": "0"}, "version"),
    ("housing:placement-decide", {"act": "empty", "scope": "matching", "count": "3"}, "count"),
    ("housing:placement-undo", {"confirmed": "2"}, "confirmed"),
    ("housing:draft", {"act": "confirm", "people": "1", "version": "0"}, "people"),
    ("housing:changes-give", {"students": "S-1001", "room": "1", "version": "0"}, "room"),
    ("housing:changes-keep", {"change": "1"}, "change"),
    ("housing:pairs-decide", {"decision": "accept", "pair": "1:0"}, "pair"),
    ("housing:pairs-swap", {"student": "S-1001", "partner": "S-1003", "pair": "1:0"}, "pair"),
    ("housing:requests-cut", {"pair": "1001-1002"}, "pair"),
    ("housing:requests-keep", {"request": "1"}, "request"),
    ("housing:building-draft", {"column": "0", "use": "hall"}, "column"),
    ("cohorts:student-file", {"column": "0", "use": "student", "version": "1"}, "column"),
    ("cohorts:student-file", {"action": "same", "row": "2", "position": "0"}, "position"),
    ("cohorts:pairs-draft", {"first": "0", "second": "1", "version": "1"}, "second"),
    ("cohorts:draft-change", {"action": "read_anew", "sheet": "0", "version": "1"}, "sheet"),
    ("cohorts:draft-change", {"action": "read_anew", "header_row": "1"}, "header_row"),
    ("surveys:clash-choose", {"person": "1", "which": "first"}, "person"),
    ("surveys:clash-restore", {"person": "1"}, "person"),
    ("surveys:clash-correct", {"person": "1", "number": "N2"}, "person"),
    ("surveys:texts-handle", {"text": "1"}, "text"),
    ("surveys:texts-reopen", {"text": "1", "person": "1"}, "person"),
    ("surveys:question-move", {"version": "1", "step": "1"}, "version"),
    ("surveys:question-place", {"version": "1", "section": "0", "place": "0"}, "section"),
    ("surveys:question-remove", {"version": "1"}, "version"),
    ("surveys:section-rename", {"version": "1", "title": "Habits"}, "version"),
    ("surveys:languages-add", {"version": "1", "language": "de"}, "version"),
    ("room_choice:round-pause", {"version": "0"}, "version"),
    ("surveys:languages", {"version": "1"}, "version"),
    ("surveys:languages-draft", {"column": "1", "use": "de", "version": "1"}, "column"),
    ("surveys:languages-draft-use", {"version": "1", "shown": "1"}, "shown"),
    ("surveys:bounces", {"people": "a@x.example", "asked": "2"}, "asked"),
    ("housing:place-dates", {"version": "0"}, "version"),
    ("residents:ask-decide", {"version": "0", "state": "declined"}, "version"),
]  # fmt: skip
MEMBERS = [
    ("housing:placement-decide", {"act": "accept", "room": "1"}, "act", NO_DECISION),
    ("housing:placement-decide", {"act": "empty", "scope": "matching"}, "scope", OLD_PAGE),
    ("housing:placement-solve", {"leave": "requests"}, "leave", NO_ACTION),
    ("housing:placement-publish", {"action": "withdraw"}, "action", NO_ACTION),
    ("housing:draft", {"act": "discard"}, "act", NO_ACTION),
    ("housing:pairs-decide", {"decision": "accept", "pair": "1:0"}, "decision", NO_DECISION),
    ("housing:buildings-state", {"state": "open"}, "state", NO_STATE),
    ("cohorts:student-file", {"action": "undo", "version": "1"}, "action", NO_ACTION),
    ("cohorts:pairs-draft", {"action": "sure", "version": "1"}, "action", NO_ACTION),
    ("surveys:languages-draft", {"action": "undo", "version": "1"}, "action", NO_ACTION),
    ("surveys:clash-choose", {"which": "first"}, "which", NOT_CHOSEN),
    ("surveys:question-move", {"version": "1", "step": "1"}, "step", OLD_PAGE),
    ("students:hide-names", {"hide": "1"}, "hide", OLD_PAGE),
    ("identity:duty", {"duty": "1"}, "duty", OLD_PAGE),
]  # fmt: skip
# Every field gets a word and some of the others in turn.
CASES = [
    (*case, value)
    for k, (*case, values) in enumerate(
        [(*one, OLD_PAGE, NO_NUMBER) for one in NUMBERS] + [(*one, NO_MEMBER) for one in MEMBERS]
    )
    for value in ("abc", *(values[(2 * k + n) % len(values)] for n in range(2)))
]
# Fields without which an act has no meaning.
NEEDED = [
    ("students:hide-names", OLD_PAGE), ("identity:duty", OLD_PAGE),
    ("housing:placement-decide", NO_DECISION), ("housing:pairs-decide", NO_DECISION),
    ("housing:draft", NO_ACTION), ("housing:building-draft", OLD_PAGE),
    ("surveys:clash-restore", OLD_PAGE), ("surveys:clash-correct", OLD_PAGE),
    ("surveys:clash-choose", NOT_CHOSEN), ("matching:model-check", GONE),
    ("surveys:languages-draft-use", OLD_PAGE),
]  # fmt: skip


@pytest.fixture(autouse=True)
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests have neither broker nor worker, for which /readyz would wait."""
    expect_no_broker(monkeypatch)


def raw_reads() -> Iterator[str]:
    """Yield the file and the function of every read of `request.POST` outside a form."""
    for path in WEBAPP.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for function in ast.walk(ast.parse(text)) if ".POST" in text else ():
            if not isinstance(function, ast.FunctionDef):
                continue
            inner = [n for n in ast.walk(function) if n is not function]
            own = set(inner).difference(
                *(ast.walk(n) for n in inner if isinstance(n, ast.FunctionDef))
            )
            handed = {n for call in own if _is_form(call) for n in ast.walk(call.args[0])}
            if any(isinstance(n, ast.Attribute) and n.attr == "POST" for n in own - handed):
                yield f"{path.relative_to(WEBAPP)} {function.name}"


def _is_form(call: ast.AST) -> bool:
    """Return True for `SomeForm(request.POST or None, ...)`."""
    if not (isinstance(call, ast.Call) and call.args):
        return False
    made = call.func.func if isinstance(call.func, ast.Call) else call.func
    return isinstance(made, ast.Name) and made.id.lower().endswith(("form", "form_of"))


def test_fields_are_read_by_forms() -> None:
    assert sorted(raw_reads()) == sorted(RAW)


def send(client: Client, address: str, fields: dict[str, Any]) -> tuple[HttpResponse, set[str]]:
    """Send a form, undo what it changed, and return the answer and the tables it wrote to."""
    client.cookies.pop("messages", None)  # toasts that no page has shown yet
    with transaction.atomic(), written_tables() as written:
        answer = client.post(address, fields)
        transaction.set_rollback(True)
    return answer, written


def refusals_of(answer: HttpResponse) -> list[str]:
    """Return the errors that the answer reports in toasts, or as notices on its page."""
    if answer.status_code == 422:
        notices = html.fromstring(answer.content).xpath('//*[@role="alert"]')
        return [said for one in notices if (said := " ".join(one.text_content().split()))]
    waiting = get_messages(answer.wsgi_request)
    return [json.loads(m.message)["text"] for m in waiting._queued_messages if m.level == ERROR]


def test_a_hostile_field_is_refused_in_one_sentence(
    carol: User,
    urls: dict[str, str],
    client_of: Callable[[User], Client],
) -> None:
    client = client_of(carol)
    for name, fields, field, sentence, value in CASES:
        answer, written = send(client, urls[name], {**fields, field: value})
        case = f"{name} {field}={str(value)[:20]}: {answer.status_code}"
        assert answer.status_code in (200, 302, 422), case
        assert refusals_of(answer) == [str(sentence)], f"{case} {refusals_of(answer)}"
        assert written == set(), case
    for name, sentence in NEEDED:
        answer, written = send(client, urls[name], {})
        assert refusals_of(answer) == [str(sentence)], f"{name} {refusals_of(answer)}"
        assert written == set(), name
    for name, fields, field in NUMBERS:
        answer, written = send(client, urls[name], {**fields, field: "1\x00"})
        assert (answer.status_code, written) == (400, set()), name


def test_keys_of_another_organisation_change_nothing(
    carol: User,
    mallory: User,
    southgate: Organisation,
    urls: dict[str, str],
    client_of: Callable[[User], Client],
    make_pairs: Callable[..., Placement],
) -> None:
    theirs = {"organisation": southgate, "created_by": mallory}
    buildings = BuildingList.objects.create(**theirs, name="Theirs")
    room = Room.objects.create(buildings=buildings, hall="Oak", name="1", capacity=2, position=0)
    cohort = Cohort.objects.create(**theirs, name="Theirs", questions=[], n_students=0)
    model = LearnedModel.objects.create(**theirs, name="Theirs", questions=[])
    placement = Placement.objects.create(
        organisation=southgate, name="Theirs", cohort=cohort, buildings=buildings, model=model
    )
    client = client_of(carol)
    for name, fields in (
        ("housing:placement-decide", {"act": "accept", "room": room.pk, "version": 0}),
        ("housing:placement-decide", {"act": "keep", "room": room.pk, "version": 0}),
        ("housing:placement-decide", {"act": "empty", "room": room.pk, "version": 0}),
        ("housing:changes-give", {"students": "S-1001", "room": room.pk, "version": 0}),
        ("housing:requests-count", {"placement": placement.pk, "one_sided": "no"}),
        ("matching:model-check", {"cohort": cohort.pk}),
        ("cohorts:draft-move", {"to": "roster", "cohort": cohort.pk}),
        ("housing:building-draft-move", {"to": "roster", "cohort": cohort.pk}),
        ("housing:pairs-decide", {"decision": "accept", "pair": "999999999:0"}),
    ):
        answer, written = send(client, urls[name], fields)
        assert answer.status_code in (200, 302, 404), f"{name} {answer.status_code}"
        assert len(refusals_of(answer)) == 1, f"{name} {fields} {refusals_of(answer)}"
        assert written == set(), f"{name} {written}"
