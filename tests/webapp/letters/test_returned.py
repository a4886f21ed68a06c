"""Letters that come back to the mailbox of bounces are marked, by their own ticket only."""

import pytest
from django.core import mail

from tests.webapp.letters.test_letters import queue, states
from tests.webapp.surveys.test_builder import RETURNED
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.housing.models import Placement
from webapp.letters.models import Letter, LetterTemplate
from webapp.letters.services.letters import letters_retry, letters_send
from webapp.letters.services.returned import HEADER, letters_returned
from webapp.surveys.bounce_mailbox import note_returned


@pytest.fixture
def tickets(carol: User, placement: Placement, template: LetterTemplate) -> dict[str, str]:
    """What the letters carried that went out, by their first names."""
    queue(carol, placement, template)
    letters_send()
    return {sent.to[0].split("@")[0]: sent.extra_headers[HEADER] for sent in mail.outbox}


def returned(ticket: str) -> bytes:
    quoted = (
        f"--b\nContent-Type: text/rfc822-headers\n\nSubject: Rooms\n{HEADER}: {ticket}\n\n--b--"
    )
    return RETURNED.replace(b"--b--", quoted.encode())


def letter_to(template: LetterTemplate, address: str) -> Letter:
    """Return the letter to an address, which the database holds encrypted."""
    return next(letter for letter in template.letters.all() if letter.address == address)


def test_a_letter_that_came_back_is_marked(
    placement: Placement, template: LetterTemplate, tickets: dict[str, str]
) -> None:
    assert note_returned(returned(tickets["anna"])) == 1
    letter = letter_to(template, "anna@uni.example")
    assert letter.state == Letter.BOUNCED
    assert letter.error == "Came back: 550 5.1.1 <[address]>: no such user here"
    assert states(template)["ben"] == Letter.SENT
    line = AuditLine.objects.get(verb="noted bounces")
    assert (line.username, line.target_name) == ("system", placement.name)
    assert note_returned(returned(tickets["anna"])) == 0, "known already"


def test_who_knows_no_ticket_marks_nobodys_letter(
    template: LetterTemplate, mallory: User, tickets: dict[str, str]
) -> None:
    good = tickets["anna"]
    other = letter_to(template, "ben@uni.example").pk
    for forged in (
        f"{other}{good[good.index('~') :]}",
        f"{other}~{'x' * 43}",
        f"{10**17}~{'x' * 43}",
    ):
        assert note_returned(returned(forged)) == 0
    assert note_returned(returned(good).replace(b"5.1.1", b"4.4.1")) == 0, "only delayed"
    texts = [f"{HEADER}: {good}"]
    assert letters_returned(texts, "gone", organisation=mallory.organisation) == 0
    assert set(states(template).values()) == {Letter.SENT}


def test_what_came_back_from_the_old_address_says_nothing_of_the_new_one(
    carol: User, placement: Placement, template: LetterTemplate, tickets: dict[str, str]
) -> None:
    assert note_returned(returned(tickets["anna"])) == 1
    placement.cohort.students.filter(number=1001).update(email="new@uni.example")
    assert letters_retry(user=carol, placement=placement, template=template) == 1
    letters_send()
    assert note_returned(returned(tickets["anna"])) == 0
    assert letter_to(template, "new@uni.example").state == Letter.SENT
    assert note_returned(returned(mail.outbox[-1].extra_headers[HEADER])) == 1
