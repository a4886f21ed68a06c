"""The threat model names a test for every defence; small defences have theirs here."""

import ast
import http.server
import json
import pickle
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
import requests
from celery import Celery
from django.conf import LazySettings, global_settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from kombu.exceptions import ContentDisallowed
from kombu.serialization import loads

import webapp.settings
from tasks.celery import app as worker_app
from tests.webapp.conftest import PASSWORD
from tests.webapp.factories.questionnaires import Student
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.identity import outbound
from webapp.identity.outbound import MAX_BYTES, GuardedSession, OutboundError
from webapp.instance import BASE_DIR
from webapp.jobs.dispatch import _sender
from webapp.surveys.content import Kind
from webapp.surveys.models import WrittenAnswer
from webapp.surveys.questions import questions_of
from webapp.surveys.services.clashes import answers_choose_all
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open

MODEL = (BASE_DIR / "THREAT_MODEL.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", MODEL)))
RAMP = "I use a wheelchair, no stairs."
UNPICKLERS = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "jsonpickle"}


def paragraphs() -> dict[str, str]:
    """Return the defences by title: a paragraph that begins with a bold title, and what follows."""
    section = MODEL.partition("## Boundaries and defences")[2].partition("\n## ")[0]
    _, *parts = re.split(r"^\*\*([^*]+)\.\*\*", section, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_every_defence_names_its_tests() -> None:
    assert len(paragraphs()) > 20
    silent = [title for title, text in paragraphs().items() if "\nTests: `tests/" not in text]
    assert not silent


@pytest.mark.parametrize("named", NAMED)
def test_the_named_tests_exist(named: str) -> None:
    path, _, name = named.partition("::")
    tree = ast.parse((BASE_DIR / path).read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert [one for one in functions if one.startswith("test_")]
    assert not name or name in functions


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:webapp|engine)/[\w/]+(?:\.py)?)`", MODEL)))
)
def test_the_named_parts_of_the_code_exist(path: str) -> None:
    assert (BASE_DIR / path).exists()


def test_the_smallest_environment_of_the_guide_encrypts() -> None:
    guide = (BASE_DIR / "docs" / "operating.md").read_text(encoding="utf-8")
    block = guide.partition("name at least these in")[2].partition("With containers")[0]
    for name in ("SECRET_KEY", "ENCRYPTION_KEYS", "SECURE_COOKIES"):
        assert f"\n    {name}=" in block, name


def test_passwords_are_kept_by_the_hasher_of_django() -> None:
    """Tests hash quickly; the installation does not."""
    assert not hasattr(webapp.settings, "PASSWORD_HASHERS")
    assert global_settings.PASSWORD_HASHERS[0].endswith(".PBKDF2PasswordHasher")


@pytest.mark.parametrize("is_secure", [True, False])
def test_cookies_are_for_the_server_alone(
    bob: User, client: Client, settings: LazySettings, is_secure: bool
) -> None:
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = is_secure
    address = reverse("accounts:sign-in")
    client.get(address)
    client.post(address, {"username": "bob", "password": PASSWORD})
    for name in ("sessionid", "csrftoken"):
        kept = client.cookies[name]
        assert (kept["httponly"], kept["samesite"]) == (True, "Lax"), name
        assert bool(kept["secure"]) == is_secure, name


def test_a_new_password_ends_the_other_sessions(bob: User) -> None:
    here, elsewhere = Client(), Client()
    for client in (here, elsewhere):
        client.post(reverse("accounts:sign-in"), {"username": "bob", "password": PASSWORD})
        assert client.get("/").status_code == 200
    new = "loud-river-candle-77"
    fields = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert here.post(reverse("accounts:password"), fields).status_code in (200, 302)
    bob.refresh_from_db()
    assert bob.check_password(new)
    assert elsewhere.get("/").status_code == 302
    assert here.get("/").status_code == 200


def test_htmx_evaluates_nothing_and_asks_nobody_else(bob: User, client_of: Callable) -> None:
    page = Page(client_of(bob).get("/"))
    (text,) = page.element.xpath("//meta[@name='htmx-config']/@content")
    settings = json.loads(text)
    assert settings["allowEval"] is False
    assert settings["selfRequestsOnly"] is True


def test_a_message_is_json_and_carries_one_id(monkeypatch: pytest.MonkeyPatch) -> None:
    for app in (_sender(), Celery(config_source=webapp.settings, namespace="CELERY")):
        assert list(app.conf.accept_content) == ["json"]
        assert app.conf.task_serializer == "json"
    harmful = pickle.dumps({"args": ["x"]})
    with pytest.raises(ContentDisallowed):
        loads(harmful, "application/x-python-serialize", "binary", accept={"json"})


def test_workers_know_one_task() -> None:
    """Whoever can write to the broker chooses among these."""
    worker_app.loader.import_default_modules()
    assert {name for name in worker_app.tasks if not name.startswith("celery.")} == {
        "tasks.run_job"
    }


def test_nothing_unpickles() -> None:
    """Dask's own processes do, which is why they are for private networks only.

    One export, Cellpose's, is a pickle by its format: it is written by ``np.save`` and never read.
    """
    found = []
    written = []
    files = [path for folder in ("webapp", "engine", "tasks") for path in _sources(folder)]
    assert len(files) > 400
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            found += [f"{path}: {name}" for name in names if name.split(".")[0] in UNPICKLERS]
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.save":
                own = [one for one in node.keywords if one.arg == "allow_pickle"]
                written += [path.name for one in own if ast.unparse(one.value) == "True"]
                continue
            for one in node.keywords if isinstance(node, ast.Call) else ():
                if one.arg == "allow_pickle" and ast.unparse(one.value) != "False":
                    found.append(f"{path}: allow_pickle")
    assert not found
    assert written == ["object_files.py"]


def _sources(folder: str) -> Iterator[Path]:
    yield from (BASE_DIR / folder).rglob("*.py")


class _Provider(http.server.BaseHTTPRequestHandler):
    """A provider that sends elsewhere, or too much."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/inside")
            self.end_headers()
        elif self.path.startswith("/slow"):
            self._drip()
        else:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"x" * (MAX_BYTES + (self.path == "/long")))

    def _drip(self) -> None:
        """Send a byte every 0.05 seconds until the other side hangs up."""
        head = b"HTTP/1.0 200 OK\r\n" + b"\r\n" * (self.path == "/slow-body")
        with suppress(OSError):
            self.wfile.write(head + b"x")
            while not self.server.is_over.wait(0.05):
                self.wfile.write(b"x")

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def provider() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Provider)
    server.is_over = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.is_over.set()
    server.shutdown()
    server.server_close()


def test_a_provider_leads_nowhere_and_sends_no_more_than_a_megabyte(
    provider: str, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _Provider.asked.clear()
    with pytest.raises(OutboundError):  # inside a private network
        GuardedSession().get(f"{provider}/whole")
    assert _Provider.asked == []
    settings.SIGN_IN_PRIVATE_HOSTS = ["127.0.0.1"]
    assert GuardedSession().get(f"{provider}/moved").status_code == 302
    assert _Provider.asked == ["/moved"], "a redirect is not followed"
    assert len(GuardedSession().get(f"{provider}/whole").content) == MAX_BYTES
    with pytest.raises(OutboundError, match="too long"):
        GuardedSession().get(f"{provider}/long")


@pytest.mark.parametrize("path", ["/slow-head", "/slow-body"])
def test_a_provider_that_answers_byte_by_byte_keeps_nobody_waiting(
    provider: str, settings: LazySettings, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Each byte comes in time; the limit is for the whole answer."""
    assert outbound.WHOLE_SECONDS == 10
    monkeypatch.setattr(outbound, "WHOLE_SECONDS", 0.5)
    settings.SIGN_IN_PRIVATE_HOSTS = ["127.0.0.1"]
    with pytest.raises(OutboundError, match="did not answer within"):
        GuardedSession().get(f"{provider}{path}")


def test_a_provider_whose_name_moves_inside_after_the_check_is_not_called(
    provider: str, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _Provider.asked.clear()
    port = int(provider.rpartition(":")[2])
    answers = ["8.8.8.8", "127.0.0.1"]

    def look_up(*_: object, **__: object) -> list[tuple]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers.pop(0), port))]

    monkeypatch.setattr(outbound.socket, "getaddrinfo", look_up)
    with pytest.raises(requests.RequestException, match="inside a private network"):
        GuardedSession().get(f"https://idp.example:{port}/whole")
    assert not answers, "the name was looked up again for the connection"
    assert _Provider.asked == []


def test_reading_answers_leaves_a_line_and_no_line_holds_an_answer(
    bob: User, client_of: Callable[[User], Client]
) -> None:
    made = questionnaire_create(user=bob, title="Own", form="own")
    closes_at = timezone.now() + timedelta(days=1)
    questionnaire_open(user=bob, questionnaire=made, closes_at=closes_at)
    number = next(q.number for q in questions_of(made.content) if q.kind is Kind.TEXT)
    for k, name in enumerate(("N1", "N2", "N3", "N3")):
        student = Student(made, name)
        student.say_all(k)
        student.say(number, f"{RAMP} {k}")
    client, texts = client_of(bob), list(WrittenAnswer.objects.all())
    answers = f"/questionnaires/{made.pk}/answers"

    def lines() -> int:
        return AuditLine.objects.filter(verb__in=("read answers", "compared answers")).count()

    looks = [
        f"{answers}/",
        f"{answers}/?q=wheelchair",
        f"{answers}/people/",
        f"{answers}/people/{texts[0].participant_id}/",
        f"/questionnaires/{made.pk}/clashes/",
    ]
    for k, address in enumerate(looks):
        assert client.get(address).status_code == 200
        assert lines() == k + 1, address
    client.post(f"{answers}/handle/", {"text": texts[0].pk})
    client.post(f"{answers}/{texts[1].pk}/need/", {"need": "step-free"})
    client.get(f"{answers}/people.csv")
    answers_choose_all(user=bob, questionnaire=made, which="first")
    cohort_from_answers(user=bob, questionnaire=made, name="All")
    held = " ".join(str(one.details) for one in AuditLine.objects.all())
    assert AuditLine.objects.filter(verb="exported").exists()
    assert "wheelchair" not in held
    assert "stairs" not in held


def test_the_api_takes_no_long_body_and_gives_no_endless_page(
    program_of: Callable,
    bob: User,
) -> None:
    program = program_of(bob)
    assert program.post("/bounces", {"addresses": ["x" * 1024**2]}).status_code == 413
    assert program.get("/questionnaires?limit=1000000").data["limit"] == 1000
