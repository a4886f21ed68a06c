"""What programs that watch the server see: alive, ready, numbers, lines of JSON."""

import json
import logging
import threading

import pytest
import structlog
from django.conf import LazySettings
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from tests.webapp.test_database_away import database_away
from webapp.accounts.models import User
from webapp.jobs import dispatch, registry
from webapp.jobs.context import JobContext
from webapp.jobs.models import Job
from webapp.jobs.registry import Outcome
from webapp.jobs.runner import run_job
from webapp.jobs.services import job_enqueue
from webapp.monitoring import readiness

PARTS = {"database", "store", "room on disk", "broker", "worker"}


@pytest.fixture(autouse=True)
def all_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests have neither broker nor worker; what was found before is forgotten."""
    for name in ("broker", "worker"):
        monkeypatch.setitem(readiness.checks, name, lambda: None)
    monkeypatch.setattr(readiness, "_last", None)


def test_it_is_alive_while_the_database_is_away(client: Client, db: None) -> None:
    from django.db import OperationalError

    with database_away(OperationalError):
        assert client.get("/healthz").status_code == 200
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["database"] == "not ready"


def test_it_is_ready_when_every_part_is(client: Client, db: None) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert set(answer.json()) == PARTS
    assert set(answer.json().values()) == {"ok"}


@pytest.mark.parametrize("part", sorted(PARTS))
def test_one_part_that_fails_is_named_and_no_more(
    client: Client, db: None, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("password=secret")

    monkeypatch.setitem(readiness.checks, part, fail)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert [name for name, word in answer.json().items() if word != "ok"] == [part]
    assert b"secret" not in answer.content


def test_a_database_that_another_process_holds_is_slow_and_ready(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held() -> None:
        raise readiness.SlowError("database is locked")

    monkeypatch.setitem(readiness.checks, "database", held)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["database"]) == (200, "slow")


def test_a_part_that_never_answers_holds_nobody(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, asked = threading.Event(), []

    def never() -> None:
        asked.append(1)
        answers.wait()

    monkeypatch.setitem(readiness.checks, "broker", never)
    monkeypatch.setattr(readiness, "PATIENCE_SECONDS", 0.05)
    try:
        found = [readiness.readiness(fresh=True) for _ in range(3)]
    finally:
        answers.set()
    assert [parts["broker"] for parts in found] == ["not ready"] * 3
    assert found[0]["worker"] == "ok"
    assert asked == [1], "threads do not pile up"


def test_little_room_is_not_ready(client: Client, db: None, settings: LazySettings) -> None:
    settings.MIN_FREE_GB = 10.0**9
    assert client.get("/readyz").json()["room on disk"] == "not ready"


def test_a_store_that_cannot_be_written_is_not_ready(
    client: Client, db: None, settings: LazySettings
) -> None:
    settings.MEDIA_ROOT = "/proc/nothing"
    assert client.get("/readyz").json()["store"] == "not ready"


def test_a_broker_that_is_away_is_an_error(settings: LazySettings) -> None:
    settings.BROKER_URL = "redis://127.0.0.1:1/0"
    with pytest.raises(Exception, match=r"(?i)connect"):
        dispatch.check_broker()


def numbers(client: Client) -> dict[tuple[str, tuple[str, ...]], float]:
    answer = client.get("/metrics", headers={"authorization": "Bearer let-me-see"})
    assert answer.status_code == 200
    return {
        (sample.name, tuple(sorted(sample.labels.values()))): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_numbers_are_for_whoever_has_the_token(
    client: Client, bob: User, settings: LazySettings
) -> None:
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 404
    settings.METRICS_TOKEN = "let-me-see"
    assert client.get("/metrics").status_code == 404
    wrong = client.get("/metrics", headers={"authorization": "Bearer let-me-sea"})
    assert wrong.status_code == 404
    client.get("/healthz")
    Job.objects.create(organisation=bob.organisation, kind="x", title="x", seed=1)
    found = numbers(client)
    assert found["bethe_hall_jobs", ("queued",)] == 1
    assert found["bethe_hall_longest_wait_seconds", ("short",)] >= 0
    assert found["bethe_hall_free_bytes", ()] > 0
    assert found["bethe_hall_request_seconds_count", ("2xx", "monitoring:healthz")] >= 1


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The lines of JSON, as the handler writes them."""
    written: list[dict[str, object]] = []
    handler = logging.getLogger("bethe_hall.lines").handlers[0]
    monkeypatch.setattr(
        handler, "emit", lambda record: written.append(json.loads(handler.format(record)))
    )
    return written


def test_a_request_is_one_line_without_its_query(
    client: Client, db: None, lines: list[dict[str, object]]
) -> None:
    answer = client.get("/search/?q=S-1042")
    (line,) = lines
    assert (line["method"], line["path"], line["status"]) == ("GET", "/search/", 302)
    assert line["request"] == answer["X-Request-ID"]
    assert line["address"] == "127.0.0.1"
    assert "S-1042" not in json.dumps(line)


def test_one_id_leads_from_the_request_into_worker_and_engine(
    bob: User, lines: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, object]] = []

    def run(context: JobContext) -> Outcome:
        seen.append(dict(structlog.contextvars.get_contextvars()))  # what the engine's lines carry
        return {}

    kind = registry.JobKind(name="test.look", run=run, verb="Look")
    monkeypatch.setitem(registry._kinds, "test.look", kind)
    with structlog.contextvars.bound_contextvars(request="abc123"):
        job = job_enqueue(user=bob, kind="test.look", parameters={})
    run_job(job.pk, watched=False)
    (line,) = lines
    assert (line["event"], line["state"], line["attempt"]) == ("job", "succeeded", 1)
    assert (line["request"], line["job"]) == ("abc123", str(job.pk))
    assert seen == [{"request": "abc123", "job": str(job.pk)}]
