"""No log holds what opens something: personal links, tokens, passwords."""

import io
import json
import logging
import logging.config
from collections.abc import Callable, Iterator

import pytest
import structlog
from gunicorn.config import Config

from webapp.monitoring.log_settings import logging_settings
from webapp.monitoring.masking import mask
from webapp.supervisor.web_hooks import MaskingLogger

TOKEN = "7.kT3-x_9aBcDe~1wABcd~J0bXx1bU-gWkqv3sE_4fZk8yq5Yw2m1oPl9nRt7uVx0"
ENCODED = TOKEN.replace("~", "%7E")
API_TOKEN = "bh_0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"Not Found: /q/{TOKEN}/", "Not Found: /q/[link]/"),
        (f"GET /q/{ENCODED}/?n=2 HTTP/1.1", "GET /q/[link]/?n=2 HTTP/1.1"),
        (f"Not Found: /q/stop/7:{TOKEN[9:]}/", "Not Found: /q/stop/[link]/"),
        ("/q/stop/7/?x=1", "/q/stop/[link]/?x=1"),
        (f"/q/{TOKEN[:-5]}", "/q/[link]"),  # a copy that lacks its end
        (f"Referer https://x.example/q/{TOKEN}/ is", "Referer https://x.example/q/[link]/ is"),
        (f"/sign-in/?next=%2Fq%2F{ENCODED}%2F", "/sign-in/?next=%2Fq%2F[link]%2F"),
        (f"SMTPDataError: Hello {TOKEN}, again", "SMTPDataError: Hello [link], again"),
        (f"Cookie: link-abc={TOKEN}; x=1", "Cookie: link-abc=[link]; x=1"),
        ("/q/code/ABCD2345/", "/q/code/ABCD2345/"),
        ("/q/mine/0123456789abcdef/?n=2", "/q/mine/0123456789abcdef/?n=2"),
        (f"Authorization: Bearer {API_TOKEN}", "Authorization: Bearer [hidden]"),
        (f"no such token {API_TOKEN}", "no such token bh_[hidden]"),
        ("redis://:s3cret@127.0.0.1:6379/0 is away", "redis://:[hidden]@127.0.0.1:6379/0 is away"),
        ("smtps://hall:pass-word@mail.example", "smtps://hall:[hidden]@mail.example"),
        ("/oidc/x/login/callback/?code=abc&state=xyz&x=1",
         "/oidc/x/login/callback/?code=[hidden]&state=[hidden]&x=1"),
        ("18:30 to 19:30 at 10:00@noon", "18:30 to 19:30 at 10:00@noon"),
        ("5 of 40 students, ratio 1.25~1.5", "5 of 40 students, ratio 1.25~1.5"),
    ],
)  # fmt: skip
def test_a_text_is_masked(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.fixture
def written() -> Iterator[Callable[[str], str]]:
    """Log as the product does, and return what a handler wrote so far."""
    config = structlog.get_config()
    settings = logging_settings(level="INFO", lines_file="")
    loggers = [logging.root, *map(logging.getLogger, settings["loggers"])]
    before = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    streams = {name: io.StringIO() for name in settings["handlers"]}
    for name, stream in streams.items():
        settings["handlers"][name]["stream"] = stream
    logging.config.dictConfig(settings)
    yield lambda name: streams[name].getvalue()
    structlog.configure(**config)
    for logger, handlers, level, propagate in before:
        logger.handlers[:], logger.level, logger.propagate = handlers, level, propagate


@pytest.mark.parametrize(
    "name", ["django.request", "django.server", "django.security.csrf", "celery", "a.library", ""]
)
def test_whoever_logs_is_masked(written: Callable[[str], str], name: str) -> None:
    log = logging.getLogger(name)
    log.error("Not Found: %s", f"/q/{TOKEN}/")
    try:
        raise ValueError(f"at /q/{TOKEN}/ with {API_TOKEN}")
    except ValueError:
        log.exception("Internal Server Error: %s", f"/q/{TOKEN}/")
    said = written("stderr")
    assert "/q/[link]/" in said
    assert "ValueError" in said
    assert "kT3-x" not in said
    assert API_TOKEN not in said


def test_a_line_of_json_stays_whole_whatever_a_path_holds(written: Callable[[str], str]) -> None:
    lines = structlog.get_logger("bethe_hall.lines")
    with structlog.contextvars.bound_contextvars(referer=f"/q/{TOKEN}/"):
        lines.info("request", path=f'/q/{TOKEN}","status":200/', what={"a": [TOKEN]})
        lines.info("request", path=f"/q/{TOKEN}\\\n/", error=ValueError(TOKEN), status=404)
    first, second = (json.loads(line) for line in written("lines").splitlines())
    assert first["path"].startswith("/q/[link]")
    assert (first["referer"], first["what"]) == ("/q/[link]/", {"a": ["[link]"]})
    assert (second["error"], second["status"]) == ("[link]", 404)
    assert "kT3-x" not in written("lines")


def test_the_web_server_masks_its_own_logs(capsys: pytest.CaptureFixture[str]) -> None:
    config = Config()
    config.set("accesslog", "-")
    log = MaskingLogger(config)
    try:
        raise OSError(f"reading /q/{TOKEN}/")
    except OSError:
        log.exception("Error handling request %s", f"/q/{TOKEN}/?n=2")
    log.access_log.info('"%s" 200 "%s"', f"GET /q/{ENCODED}/ HTTP/1.1", f"https://x/q/{TOKEN}/")
    streams = capsys.readouterr()
    assert "Error handling request /q/[link]/?n=2" in streams.err
    assert "OSError: reading /q/[link]/" in streams.err
    assert streams.out == '"GET /q/[link]/ HTTP/1.1" 200 "https://x/q/[link]/"\n'
