"""Invitations that come back to a mailbox: read by IMAP, and believed only with our ticket."""

import socketserver
import threading
from collections.abc import Iterator

import pytest

from tests.webapp.surveys.test_builder import RETURNED
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.surveys.bounce_mailbox import HEADER, mailbox_read, note_returned, ticket_of
from webapp.surveys.models import Participant, Questionnaire


def returned_for(ticket: str, kind: str = "text/rfc822-headers") -> bytes:
    """A returned mail that quotes ours, as mail servers do."""
    quoted = f"--b\nContent-Type: {kind}\n\nSubject: Housing 2027\n{HEADER}: {ticket}\n\n--b--"
    return RETURNED.replace(b"--b--", quoted.encode())


class Mailbox(socketserver.ThreadingTCPServer):
    """As much of an IMAP server as reading a folder takes."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, mails: list[bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.mails, self.seen, self.said = mails, set(), []

    @property
    def url(self) -> str:
        return f"imap://hall%40x:pass%2Fword@127.0.0.1:{self.server_address[1]}/Returned%20mail"


class _Session(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"* OK ready\r\n")
        for line in self.rfile:
            tag, _, command = line.decode().strip().partition(" ")
            self.server.said.append(command)
            self._answer(command)
            self.wfile.write(f"{tag} OK done\r\n".encode())

    def _answer(self, command: str) -> None:
        words, server = command.split(), self.server
        if words[0] == "CAPABILITY":
            self.wfile.write(b"* CAPABILITY IMAP4rev1\r\n")
        elif words[0] == "SELECT":
            self.wfile.write(f"* {len(server.mails)} EXISTS\r\n".encode())
        elif words[0] == "SEARCH":
            new = [str(k) for k in range(1, len(server.mails) + 1) if k not in server.seen]
            self.wfile.write(f"* SEARCH {' '.join(new)}\r\n".encode())
        elif words[0] == "FETCH":
            mail = server.mails[int(words[1]) - 1]
            self.wfile.write(f"* {words[1]} FETCH (BODY[]<0> {{{len(mail)}}}\r\n".encode())
            self.wfile.write(mail + b")\r\n")
        elif words[0] == "STORE":
            server.seen.add(int(words[1]))
        elif words[0] == "LOGOUT":
            self.wfile.write(b"* BYE\r\n")


@pytest.fixture
def person(opened: Questionnaire) -> Participant:
    return Participant.objects.create(questionnaire=opened, email="gone@x.example")


@pytest.fixture
def mailbox(person: Participant, settings: object) -> Iterator[Mailbox]:
    away = b"From: gone@x.example\nSubject: Away\n\nI am away.\n"
    with Mailbox([away, returned_for(ticket_of(person)), b"\xff\x00"]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings.BOUNCES_URL = server.url
        yield server
        server.shutdown()


def test_the_mailbox_is_read_once_in_a_while(mailbox: Mailbox, person: Participant) -> None:
    assert mailbox_read() == 1
    person.refresh_from_db()
    assert person.bounce == "550 5.1.1 <gone@x.example>: no such user here"
    line = AuditLine.objects.get(verb="noted bounces")
    assert (line.username, line.details) == ("system", {"people": 1})
    assert mailbox.seen == {1, 2, 3}
    assert any("hall@x" in said for said in mailbox.said)
    asked = len(mailbox.said)
    assert mailbox_read() == 0
    assert len(mailbox.said) == asked, "not again within five minutes"


def test_a_mailbox_that_is_away_stops_nothing(mailbox: Mailbox, settings: object) -> None:
    settings.BOUNCES_URL = "imap://a:b@127.0.0.1:1/INBOX"
    assert mailbox_read() == 0


def test_who_knows_no_ticket_stops_nobodys_mail(bob: User, person: Participant) -> None:
    other = Participant.objects.create(questionnaire=person.questionnaire, email="b@x.example")
    ticket = ticket_of(person)
    for forged in (f"{other.pk}{ticket[ticket.index('~') :]}", f"{other.pk}~{'x' * 43}", ""):
        assert note_returned(returned_for(forged)) == 0
    assert note_returned(returned_for(ticket).replace(b"5.1.1", b"4.4.1")) == 0, "only delayed"
    assert not Participant.objects.exclude(bounced_at=None).exists()
    assert note_returned(returned_for(ticket, "message/rfc822")) == 1
    assert note_returned(returned_for(ticket)) == 0, "known already"
