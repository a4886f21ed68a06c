"""Every kind of link and every act of a student's page, tried by whom it does not belong to."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core import signing
from django.utils import timezone

from tests.webapp.factories.questionnaires import enter
from tests.webapp.reader import Reader
from tests.webapp.roles import Page
from webapp.surveys.links import VALID_FOR, token_of
from webapp.surveys.models import Participant, Questionnaire, new_nonce
from webapp.surveys.questions import questions_of

ACTS = (
    {"n": "1", "answer": "1", "action": "next"},
    {"n": "1", "action": "skip"},
    {"n": "2", "action": "back"},
    {"action": "finish"},
    {"action": "withdraw"},
)
SURE = {"action": "withdraw", "sure": "yes"}


def forged(anna: Participant) -> str:
    """Ben's key with what Anna's link is signed with."""
    return token_of(anna).replace(f"{anna.pk}.", f"{anna.pk + 1}.", 1)


def signed_elsewhere(anna: Participant) -> str:
    """The right content, signed for another purpose of this installation."""
    signer = signing.TimestampSigner(salt="webapp.surveys.bounces", sep="~")
    return signer.sign(f"{anna.pk}.{anna.nonce}")


def revoked(anna: Participant) -> str:
    token = token_of(anna)
    Participant.objects.filter(pk=anna.pk).update(nonce=new_nonce())
    return token


def expired(anna: Participant) -> str:
    class Old(signing.TimestampSigner):
        def timestamp(self) -> str:
            then = timezone.now() - VALID_FOR - timedelta(seconds=1)
            return signing.b62_encode(int(then.timestamp()))

    return Old(salt="webapp.surveys.links", sep="~").sign(f"{anna.pk}.{anna.nonce}")


def of_nobody(anna: Participant) -> str:
    token = token_of(anna)
    return token.replace(f"{anna.pk}.", f"{10**12}.", 1)


def closed(anna: Participant) -> str:
    Questionnaire.objects.update(closes_at=timezone.now())
    return token_of(anna)


def not_open_yet(anna: Participant) -> str:
    Questionnaire.objects.update(opens_at=timezone.now() + timedelta(days=1))
    return token_of(anna)


def without_their_sign_in(anna: Participant) -> str:
    Questionnaire.objects.update(asks_sign_in=True)
    return token_of(anna)


KINDS: dict[Callable[[Participant], str], tuple[int, bool]] = {
    # how each is answered, and whether deleting one's own answers is refused as well
    forged: (404, True),
    signed_elsewhere: (404, True),
    revoked: (404, True),
    expired: (404, True),
    of_nobody: (404, True),
    closed: (410, False),
    not_open_yet: (404, True),
    without_their_sign_in: (302, True),
}


@pytest.fixture
def anna(opened: Questionnaire) -> Participant:
    """Anna and Ben, who answered the first question."""
    key = questions_of(opened.content)[0].key
    made = [
        Participant.objects.create(
            questionnaire=opened, email=f"{name}@x.example", answers={key: 2}
        )
        for name in ("anna", "ben")
    ]
    return made[0]


def kept() -> list[tuple[object, ...]]:
    rows = Participant.objects.order_by("pk")
    return list(rows.values_list("pk", "answers", "updated_at", "finished_at"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nobody_sees_or_changes_what_a_link_does_not_open(
    kind: Callable[[Participant], str], anna: Participant, opened: Questionnaire
) -> None:
    status, keeps_answers = KINDS[kind]
    url = f"/q/{kind(anna)}/"
    before, client = kept(), Reader(headers={"Accept-Language": "en"})
    wording = questions_of(opened.content)[0].text
    for act in (None, *ACTS, *([SURE] if keeps_answers else [])):
        answer = client.post(url, act) if act else client.get(enter(client, url))
        signed_out = 401 if kind is without_their_sign_in and act else status
        assert answer.status_code == signed_out, act
        text = Page(answer, status=answer.status_code)
        assert wording not in text.source
        assert "anna" not in text.source
        assert kept() == before, act


def test_a_link_opens_one_persons_answers_only(anna: Participant) -> None:
    client = Reader(headers={"Accept-Language": "en"})
    before = kept()[1]
    for act in (*ACTS, SURE):
        client.post(f"/q/{token_of(anna)}/", act | {"participant": str(anna.pk + 1)})
    assert kept() == [before]
