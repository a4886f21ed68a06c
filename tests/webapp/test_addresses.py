"""Every address that the resolver knows: who may call it, and what strangers and nonsense get.

A new address fails here until its least role is written down. Addresses of images and of the
interface for programs are enumerated in the same way by their own files.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlencode

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import Resolver404, resolve

from tests.webapp.conftest import make_user
from tests.webapp.factories.page_addresses import ADDRESSES, expect_no_broker
from webapp.accounts.models import Organisation, Role, User
from webapp.audit.models import AuditLine

ClientOf = Callable[[User], Client]

# Students have no account: a signed link or a code is what they need, wherever they study.
LINKED = {
    "surveys:enter", "surveys:code", "surveys:answer", "surveys:mine", "surveys:stop",
    "residents:enter", "residents:sign-in", "residents:home", "residents:contact",
    "residents:ask", "residents:take-back", "waiting:own-accept", "waiting:own-decline",
    "waiting:own-move", "waiting:own-move-stop",
    "room_choice:rooms", "room_choice:choose",
}  # fmt: skip
# No role opens these, but the cookie of a personal link, or a provider that takes students.
COOKIED = {
    "surveys:mine", "residents:home", "residents:contact", "residents:ask", "residents:take-back",
    "residents:sign-in", "waiting:own-accept", "waiting:own-decline",
    "waiting:own-move", "waiting:own-move-stop",
    "room_choice:rooms", "room_choice:choose",
}  # fmt: skip
# What browsers and providers call while nobody is signed in yet; a name in them finds a provider.
VOUCHING = {
    "identity:back-channel", "openid_connect_login", "openid_connect_callback", "saml_login",
    "saml_acs", "saml_finish_acs", "saml_sls", "saml_metadata", "accounts:sign-in-at",
}  # fmt: skip
OPEN = {
    "monitoring:healthz", "monitoring:readyz", "monitoring:metrics", "accounts:sign-in",
    "common:words-of-scripts",
    "identity:code", *LINKED, *VOUCHING,
}  # fmt: skip
# Addresses of proposals; what they lead to asks for the rights.
MOVED = {
    f"housing:{name}-moved"
    for name in (
        "placements", "placement-new", "placement", "pair-numbers", "placement-compute",
        "placement-rename", "placement-delete", "pairs-export", "pairs-decide", "pairs-rule",
        "pairs-swap", "placement-undo", "pair", "pair-originals",
    )
}  # fmt: skip
EVERYBODY = {
    "common:home", "common:help", "common:search", "common:rail", "accounts:sign-out",
    "accounts:password", "accounts:settings", "identity:second-factor",
    "jobs:list", "jobs:job", "jobs:card", "jobs:bell", "jobs:convergence",
    "cohorts:list", "cohorts:cohort", "matching:models", "matching:model",
    "matching:model-certificate", "matching:model-weights",
    "housing:pair-numbers", "housing:pair", *MOVED, "api:docs", "api:openapi", "api:tokens",
    "api:token-revoke", "housing:building-lists", "housing:buildings", "housing:placements",
    "housing:placement", "housing:placement-floors", "housing:scenarios",
    "housing:history", "surveys:list",
    "surveys:questionnaire", "reports:checks", "reports:report", "demonstration:state",
    "demonstration:step", "demonstration:close", "demonstration:show",
    "students:student", "students:hide-names",
}  # fmt: skip
STAFF = {
    "surveys:new", "surveys:settings", "surveys:open", "surveys:close", "surveys:preview",
    "surveys:question-add", "surveys:question", "surveys:question-move", "surveys:question-place",
    "surveys:question-remove", "surveys:section-add", "surveys:section-rename",
    "surveys:section-remove", "surveys:undo", "surveys:languages", "surveys:languages-read",
    "surveys:languages-file", "surveys:languages-own", "surveys:languages-add",
    "surveys:languages-draft", "surveys:languages-draft-use",
    "surveys:languages-remove", "surveys:people", "surveys:people-add", "surveys:mails-send",
    "surveys:mails-remind", "surveys:reminder-schedule", "surveys:reminder-cancel",
    "surveys:bounces", "surveys:bounces-undo", "surveys:withdrawal-delete",
    "surveys:write-again", "surveys:link-send",
    "surveys:link-renew", "surveys:person-remove", "surveys:make-cohort", "surveys:join-cohort",
    "surveys:clashes", "surveys:clash-choose", "surveys:clash-restore", "surveys:clash-correct",
    "surveys:texts", "surveys:texts-handle", "surveys:texts-reopen", "surveys:text-need",
    "surveys:answers-people", "surveys:answers-person", "surveys:answers-questions",
    "surveys:answers-file", "surveys:texts-file", "surveys:answers-requests",
    "surveys:answers-sent-file",
    "audit:log", "audit:export", "jobs:cancel", "cohorts:upload", "cohorts:latecomers",
    "cohorts:latecomers-undo", "cohorts:draft",
    "cohorts:draft-change", "cohorts:draft-confirm", "cohorts:draft-discard", "cohorts:rename",
    "cohorts:split", "cohorts:simulate", "cohorts:pairs-upload", "cohorts:pairs-draft",
    "cohorts:pairs-confirm", "cohorts:student-file", "cohorts:student-file-confirm",
    "matching:model-new", "matching:model-set",
    "matching:model-check", "matching:model-rename", "matching:model-stop",
    "matching:model-intervals",
    "housing:pairs-export", "housing:pairs-decide", "housing:pairs-rule", "housing:pairs-swap",
    "housing:pair-originals",
    "housing:buildings-upload", "housing:building-draft", "housing:building-draft-confirm",
    "housing:building-draft-discard", "housing:buildings-rename", "housing:room",
    "housing:room-remove", "housing:wish-effects", "housing:requests",
    "housing:requests-change", "housing:requests-import", "housing:request-settle",
    "housing:request-leave-out", "housing:requests-match", "housing:requests-leave-out",
    "housing:requests-split", "housing:requests-circles", "housing:requests-impossible",
    "housing:requests-cut", "housing:requests-keep", "housing:requests-themselves",
    "housing:requests-clear", "housing:requests-count", "housing:requests-try",
    "housing:placement-try", "housing:placement-new", "housing:building-draft-move",
    "cohorts:draft-move",
    "housing:placement-rules", "housing:placement-solve", "housing:placement-compute",
    "housing:placement-decide", "housing:placement-count-needs",
    "housing:placement-undo", "housing:changes", "housing:changes-act", "housing:changes-withdraw",
    "housing:changes-return", "housing:changes-give", "housing:changes-keep",
    "housing:changes-first", "housing:changes-last", "housing:changes-propose",
    "housing:changes-choose", "housing:changes-discard", "housing:changes-moves",
    "housing:placement-choose", "housing:placement-relearn", "housing:scenarios-file",
    "housing:placement-rename", "housing:placement-export", "housing:buildings-state",
    "housing:rooms-edit", "housing:rooms-undo", "housing:placement-floors-file",
    "housing:needs", "housing:need-ask",
    "housing:terms", "housing:term", "housing:term-remove", "housing:placement-term",
    "housing:place-dates",
    "housing:version", "housing:version-use", "housing:version-discard", "housing:draft",
    "letters:templates", "letters:template-new", "letters:template", "letters:template-remove",
    "letters:ask", "letters:ask-send", "letters:placement", "letters:placement-act",
    "letters:placement-addresses", "letters:placement-file", "letters:placement-returned",
    "letters:placement-stop", "letters:placement-test",
    "reports:check-start", "reports:afterwards", "reports:afterwards-learn",
    "reports:report-file", "reports:rosters", "reports:roster-file",
    "reports:roster-remove", "demonstration:retry", "students:note", "students:note-new",
    "students:note-edit", "students:note-delete",
    "residents:asks", "residents:ask-decide", "residents:page-renew",
    "waiting:list", "waiting:export", "waiting:order", "waiting:turn", "waiting:offer",
    "waiting:move-new", "waiting:move-remove",
    "waiting:offer-answer", "waiting:offer-withdraw", "waiting:offer-extend",
    "room_choice:rounds", "room_choice:round", "room_choice:round-new", "room_choice:round-edit",
    "room_choice:rounds-empty", "room_choice:round-publish", "room_choice:round-mail",
    "room_choice:round-pause", "room_choice:round-resume", "room_choice:round-extend",
    "room_choice:round-close", "room_choice:round-remove", "room_choice:round-undo",
    "room_choice:round-file",
}  # fmt: skip
ADMINISTRATORS = {
    "accounts:people", "accounts:change-role", "accounts:change-active", "accounts:reset-password",
    "accounts:rename-organisation", "accounts:change-names", "identity:providers",
    "identity:provider-new",
    "identity:provider", "identity:provider-remove", "identity:duty",
    "identity:remove-second-factor", "cohorts:purge", "matching:model-delete",
    "housing:buildings-remove", "housing:placement-publish",
    "housing:placement-delete", "surveys:delete", "letters:placement-send",
    "letters:placement-retry", "operations:page", "webhooks:list", "webhooks:webhook",
    "webhooks:act", "webhooks:test", "webhooks:repeat", "webhooks:secret", "webhooks:remove",
}  # fmt: skip
# Whatever their role: who looks after the installation. Nobody else, administrators neither.
OPERATORS = {
    "operations:forget", "operations:back-up", "operations:alert-me", "operations:alert-me-no-more",
}  # fmt: skip
# Not found without more: a token is revoked by its owner, a model is checked on a chosen cohort,
# what is sent is a chosen letter, moves are listed once they are worked out, and a file that a
# student sent is one that was sent.
NAMES_ANOTHER_OBJECT = {
    "api:token-revoke", "matching:model-check", "letters:placement-file",
    "housing:changes-moves", "surveys:answers-sent-file",
}  # fmt: skip
# What reading may write: who came, what the log promises to record, and the mark of the store.
NOTED = {
    "django_session", "audit_auditline", "api_apitoken", "jobs_joblistvisit", "common_installation",
}  # fmt: skip
NAMED = re.compile(r"nonce-[^']+|\d{2}[.-]?\d{2}")  # of one answer: nonces, times in names of files
WRITES = re.compile(r'\s*(?:INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM)\s+"?(\w+)', re.IGNORECASE)
CLIMBING = ("../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "..\\..\\settings.py")
# What stands in every parameter and field of a form that somebody has taken apart.
NONSENSE = {
    "a digit that is no number": "²",
    "a long number": "9" * 5000,
    "a number no column holds": str(2**63),
    "a zero byte": "\x00",
    "long text": "🙂" + "n" * 4999,
}
# Only Python reads these two as numbers, or fails to: every database gets them as texts, of which
# one is long anyway.
OF_PYTHON = {"a digit that is no number", "a long number"}
with_nonsense = pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name, marks=pytest.mark.any_database if name in OF_PYTHON else ())
        for name, text in NONSENSE.items()
    ],
)
FIELDS = (
    "shown",
    "members", "asked", "keep_requests", "names_for", "importance-0", "r0", "q0", "place-id",
    "heading-id", "ids", "id", "email", "student", "text", "subject",
    "need", "option", "written", "due_at", "high", "is_confirmed", "low", "required", "shown_if",
    "step", "text_en",
    "closes_at", "day_from", "day_to", "minutes", "people", "rule", "rule_values", "send_mail",
    "stays_open", "who",
    "only", "show", "wanted",
    "asks_sign_in", "duty", "language", "logout_token", "password", "place", "protocol",
    "time_zone", "without",
    "answers", "cell", "closes_on", "code", "contact", "do", "edges", "form", "hint", "identifier",
    "introduction", "is_roster", "key", "lang", "n", "opens_at", "people", "person", "position",
    "line", "reason", "rule", "section", "sure", "takes_code", "third", "title", "who_sees",
    "asked", "roommate", "shares", "none", "offers", "starts_on", "ends_on", "dates", "term",
    "arrives_on", "leaves_on", "pairs",
    "address", "addresses", "delivery", "event", "rate", "is_paused", "url", "consent_column",
    "all", "letter", "reply_to", "seen", "subject",
    "hours", "is_automatic", "number", "skips_unreachable", "values", "why",
    "act", "action", "active", "against", "answer", "as", "back", "buildings", "by", "capacity",
    "clash", "change", "check_on", "cohort", "column", "decision", "department", "designation",
    "file",
    "first", "floor", "gap", "group", "hall", "kind", "level", "meets", "method", "model", "mutual",
    "organisation",
    "name", "needs", "note", "one_sided", "only", "open", "originals", "page", "pair", "partner",
    "pinned", "preference", "price", "q", "question", "request", "rho", "ridge", "role", "room",
    "row", "same", "second", "seed", "shape", "show", "since", "sort", "state", "student",
    "students", "tab", "text", "theme", "to", "until", "use", "username",
    "value", "verb", "version",
    "whole", "wish",
)  # fmt: skip


@pytest.fixture(autouse=True)
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests have neither broker nor worker, for which /readyz would wait."""
    expect_no_broker(monkeypatch)


FORM = "application/x-www-form-urlencoded"


def answers(user: User | None, url: str, fields: str = "") -> list[int]:
    """Ask by GET and by POST, forget what that changed, and return the status codes but 405.

    ``fields`` are a form's as a browser sends them, written out once for all addresses.
    """
    client = Client()  # a new one each time: signing out is an address too
    if user is not None:
        client.cookies["sessionid"] = session_of(user)
    with transaction.atomic():
        pages = client.get(f"{url}?{fields}"), client.post(url, fields, content_type=FORM)
        transaction.set_rollback(True)
    return [page.status_code for page in pages if page.status_code != 405]


def session_of(user: User) -> str:
    """Return the key of a session that the user has for all addresses of a test."""
    if not hasattr(user, "session_of_test"):
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        user.session_of_test = client.cookies["sessionid"].value
    return user.session_of_test


def is_address(url: str) -> bool:
    """Return True if the resolver knows an address of this shape; others are not found."""
    try:
        resolve(unquote(url))
    except Resolver404:
        return False
    return True


@contextmanager
def written_tables() -> Iterator[set[str]]:
    """Yield the names of the tables that are written to within, but those that note who came."""
    found: set[str] = set()

    def note(execute: Callable, sql: str, *rest: object) -> object:
        if (match := WRITES.match(sql)) and match[1] not in NOTED:
            found.add(match[1])
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        yield found


def test_the_least_role_of_every_address_is_written_down() -> None:
    listed = [OPEN, EVERYBODY, STAFF, ADMINISTRATORS, OPERATORS]
    assert set().union(*listed) == set(ADDRESSES)
    assert sum(map(len, listed)) == len(ADDRESSES)


def test_visitors_are_sent_to_sign_in(urls: dict[str, str]) -> None:
    for name, url in urls.items():
        codes = answers(None, url)
        assert codes, name
        assert name in OPEN or set(codes) == {302}, name


@pytest.mark.parametrize(
    ("role", "is_operator"), [*((role, False) for role in Role), (Role.VIEWER, True)]
)
def test_every_address_asks_for_its_role(
    bob: User, urls: dict[str, str], role: Role, is_operator: bool
) -> None:
    dora = make_user("dora", bob.organisation, role)
    User.objects.filter(pk=dora.pk).update(is_operator=is_operator)
    refused = {Role.VIEWER: STAFF | ADMINISTRATORS, Role.STAFF: ADMINISTRATORS}.get(role, set())
    refused = refused - {"operations:page"} if is_operator else refused | OPERATORS
    for name, url in urls.items():
        codes = answers(dora, url)
        if name in refused:
            assert set(codes) == {403}, name
        elif name == "monitoring:metrics":
            assert set(codes) == {404}, "no role opens it, but a token of its own"
        elif name in COOKIED:
            assert set(codes) == {404}, f"{name} {codes}"
        elif name in VOUCHING:
            assert set(codes) <= {302, 400, 401}, f"{name} {codes}"
        elif name not in NAMES_ANOTHER_OBJECT:
            assert all(code < 400 or code == 422 for code in codes), f"{name} {codes}"


def test_nobody_reaches_an_object_of_another_organisation(
    client_of: ClientOf, southgate: Organisation, urls: dict[str, str]
) -> None:
    eve = make_user("eve", southgate, Role.ADMINISTRATOR)
    for name, url in urls.items():
        if name in OPERATORS:
            assert set(answers(eve, url)) == {403}, name
        elif ADDRESSES[name] and name not in LINKED | VOUCHING:
            assert set(answers(eve, url)) == {404}, name
        elif name not in OPEN:
            page = client_of(eve).get(url)
            assert b"First-years" not in getattr(page, "content", b""), name


@pytest.mark.every_database
@with_nonsense
def test_nonsense_in_every_parameter_never_fails(
    carol: User, urls: dict[str, str], text: str
) -> None:
    fields = urlencode(dict.fromkeys(FIELDS, text))
    for name, url in urls.items():
        codes = answers(carol, url, fields)
        assert all(code < 500 for code in codes), name


def test_no_get_writes_a_row(client_of: ClientOf, carol: User, urls: dict[str, str]) -> None:
    client = client_of(carol)
    client.get(urls["surveys:answer"])  # leaves the cookie for the address without a token
    pages = 0
    for name, url in urls.items():
        with written_tables() as found:
            pages += client.get(url).status_code == 200
        # Of a student's page: when it was opened.
        allowed = {"surveys_participant"} if name == "surveys:mine" else set()
        assert found <= allowed, name
    assert pages > 60


@pytest.mark.any_database
def test_no_parameter_climbs_out_of_its_folder(carol: User, urls: dict[str, str]) -> None:
    tried = 0
    for name, url in urls.items():
        for value in resolve(url).kwargs.values():
            for climb in CLIMBING:
                tried += 1
                climbed = url.replace(f"{value}", climb)
                if not is_address(climbed):
                    continue
                codes = answers(carol, climbed)
                refused = {200, 302, 400, 401, 404} if name in LINKED | VOUCHING else {404}
                assert set(codes) <= refused, f"{name} {codes}"
    assert tried > 200


def test_head_answers_as_get_and_writes_nothing(
    client_of: ClientOf, carol: User, urls: dict[str, str]
) -> None:
    client = client_of(carol)
    files = 0
    for name, url in urls.items():
        found = client.get(url)
        if found.status_code != 200 or name in OPEN:
            continue
        before = AuditLine.objects.count()
        head = client.head(url)
        assert head.status_code == 200, name
        assert not head.getvalue(), name
        for header in ("Content-Type", "Content-Disposition", "Content-Security-Policy"):
            here, there = head.headers.get(header, ""), found.headers.get(header, "")
            assert NAMED.sub("", here) == NAMED.sub("", there), f"{name} {header}"
        assert AuditLine.objects.count() == before, name
        files += "attachment" in found.headers.get("Content-Disposition", "")
    assert files >= 8
