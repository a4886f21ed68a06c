"""A published placement of six students with names and e-mails, and a mail server that says no."""

import socketserver
import threading
from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from tests.webapp.factories.placed import placed_cohort, publish
from webapp.accounts.models import User
from webapp.housing.models import Placement
from webapp.letters.models import LetterTemplate
from webapp.letters.services.templates import FIRST_SUBJECT, FIRST_TEXT, template_save


@pytest.fixture
def placement(bob: User) -> Placement:
    made = placed_cohort(bob)
    publish(made)
    return made


@pytest.fixture
def template(bob: User) -> LetterTemplate:
    return template_save(
        user=bob,
        template=None,
        name="Rooms",
        subject=FIRST_SUBJECT,
        text=FIRST_TEXT,
        contact="agreed",
        consent_column="Share my e-mail",
    )


class Mailbox(socketserver.ThreadingTCPServer):
    """An SMTP server: refuses addresses of nobody, is busy for later, cuts off cut."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.taken: list[tuple[str, str]] = []


class _Talk(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.say("220 hello")
        to = ""
        while line := self.rfile.readline().decode().strip():
            word = line[:4].upper()
            if word == "RCPT":
                to = line.split("<")[1].split(">")[0]
                if to.startswith("cut"):
                    return
                code = {"nobody": "550 no such user", "later": "451 busy"}
                self.say(code.get(to.split("@")[0], "250 ok"))
            elif word == "DATA":
                self.say("354 go on")
                lines = []
                while (text := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                    lines.append(text)
                self.server.taken.append((to, "\n".join(lines)))
                self.say("250 taken")
            elif word == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok")

    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@pytest.fixture
def mailbox(settings: LazySettings) -> Iterator[Mailbox]:
    server = Mailbox()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    settings.EMAIL_TIMEOUT = 5
    yield server
    server.shutdown()
    server.server_close()
