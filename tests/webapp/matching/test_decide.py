"""Deciding: every state, undo, two people at once, and the table that shows it."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.selectors.surveys import forget_surveys
from webapp.matching.errors import DecisionError, PairsChangedError
from webapp.matching.models import (
    Decision,
    DecisionEvent,
    ForbiddenPair,
    PairState,
    Proposal,
    ProposedPair,
)
from webapp.matching.rules import HELD_STATES
from webapp.matching.selectors.proposals import (
    count_standing,
    forbidden_pairs,
    pair_counts,
    standing_pairs,
)
from webapp.matching.services.decisions import decision_undo, note_changes, pairs_decide

HTMX = {"HX-Request": "true"}


def decide(user: User, proposal: Proposal, decision: Decision, *pairs: ProposedPair) -> Any:
    versions = {pair.pk: pair.version for pair in pairs}
    event = pairs_decide(user=user, proposal=proposal, decision=decision, versions=versions)
    for pair in pairs:
        pair.refresh_from_db()
    return event


def post(client: Any, proposal: Proposal, decision: str, *pairs: ProposedPair, **data: str) -> str:
    address = reverse("matching:decide", args=[proposal.pk])
    values = {"decision": decision, "pair": [f"{p.pk}:{p.version}" for p in pairs], **data}
    return client.post(address, values, follow=True).content.decode()


@pytest.mark.parametrize(
    ("decision", "state"),
    [
        ("accept", PairState.ACCEPTED),
        ("lock", PairState.LOCKED),
        ("reject", PairState.REJECTED),
        ("never", PairState.NEVER),
    ],
)
def test_each_decision_is_kept_said_and_undone(
    bob: User, client_of: Callable, proposal: Proposal, decision: str, state: PairState
) -> None:
    client, pair = client_of(bob), proposal.pairs.first()
    page = post(client, proposal, decision, pair)
    pair.refresh_from_db()
    assert (pair.state, pair.decided_by) == (state, "bob")
    assert pair.label in page
    assert "Undo" in page
    assert AuditLine.objects.filter(details__pairs=[pair.label], user=bob).exists()
    event = DecisionEvent.objects.get()
    client.post(reverse("matching:undo", args=[proposal.pk, event.pk]))
    pair.refresh_from_db()
    assert (pair.state, pair.decided_by) == (PairState.OPEN, "")
    assert not ForbiddenPair.objects.exists()
    proposal.refresh_from_db()
    assert proposal.changes == 0


def test_many_pairs_are_decided_and_undone_together(bob: User, proposal: Proposal) -> None:
    pairs = list(proposal.pairs.all()[:5])
    event = decide(bob, proposal, Decision.ACCEPT, *pairs)
    assert event.sentence == "5 pairs accepted."
    assert proposal.pairs.filter(state=PairState.ACCEPTED).count() == 5
    decision_undo(user=bob, proposal=proposal, event=event)
    assert not proposal.pairs.exclude(state=PairState.OPEN).exists()
    with pytest.raises(PairsChangedError, match="already undone"):
        decision_undo(user=bob, proposal=proposal, event=event)


def test_who_comes_second_is_told_and_nothing_is_lost(
    bob: User, carol: User, client_of: Callable, proposal: Proposal
) -> None:
    seen_by_both = proposal.pairs.first()
    post(client_of(bob), proposal, "lock", seen_by_both)
    page = post(client_of(carol), proposal, "never", seen_by_both)
    fresh = proposal.pairs.get(pk=seen_by_both.pk)
    assert (fresh.state, fresh.decided_by) == (PairState.LOCKED, "bob")
    assert "locked" in page
    assert "Nothing was changed" in page or "Release the lock first" in page


def test_a_stale_version_changes_none_of_many(bob: User, carol: User, proposal: Proposal) -> None:
    first, second = proposal.pairs.all()[:2]
    stale = {first.pk: first.version, second.pk: second.version}
    decide(carol, proposal, Decision.ACCEPT, second)
    with pytest.raises(PairsChangedError, match="accepted” by carol"):
        pairs_decide(user=bob, proposal=proposal, decision=Decision.REJECT, versions=stale)
    first.refresh_from_db()
    assert first.state == PairState.OPEN


def test_undo_gives_way_to_a_later_decision(bob: User, carol: User, proposal: Proposal) -> None:
    pair = proposal.pairs.first()
    event = decide(bob, proposal, Decision.ACCEPT, pair)
    decide(carol, proposal, Decision.LOCK, pair)
    with pytest.raises(PairsChangedError):
        decision_undo(user=bob, proposal=proposal, event=event)
    pair.refresh_from_db()
    assert pair.state == PairState.LOCKED
    assert DecisionEvent.objects.get(pk=event.pk).undone_at is None


def test_a_lock_must_be_released_first(bob: User, proposal: Proposal) -> None:
    pair = proposal.pairs.first()
    decide(bob, proposal, Decision.LOCK, pair)
    with pytest.raises(DecisionError, match="Release the lock first"):
        decide(bob, proposal, Decision.NEVER, pair)
    decide(bob, proposal, Decision.REOPEN, pair)
    decide(bob, proposal, Decision.NEVER, pair)
    assert pair.state == PairState.NEVER


def test_never_holds_for_the_cohort_and_reject_for_the_proposal(
    bob: User, proposal: Proposal
) -> None:
    first, second = proposal.pairs.all()[:2]
    decide(bob, proposal, Decision.REJECT, first)
    decide(bob, proposal, Decision.NEVER, second)
    assert ForbiddenPair.objects.get(first=first.first).proposal == proposal
    assert ForbiddenPair.objects.get(first=second.first).proposal is None


@pytest.mark.parametrize("decision", [Decision.REJECT, Decision.REOPEN, Decision.NEVER])
def test_a_decision_elsewhere_leaves_a_never_pair_alone(
    bob: User, proposal: Proposal, make_proposal: Callable, decision: Decision
) -> None:
    """Any decision in another proposal used to allow the pair again."""
    other = make_proposal()
    mine = proposal.pairs.first()
    theirs = other.pairs.get(first=mine.first, second=mine.second)
    decide(bob, proposal, Decision.NEVER, mine)
    event = decide(bob, other, decision, theirs)
    assert ForbiddenPair.objects.filter(proposal=None, first=mine.first).count() == 1
    decision_undo(user=bob, proposal=other, event=event)
    assert ForbiddenPair.objects.get().proposal is None


@pytest.mark.parametrize("decision", [Decision.ACCEPT, Decision.LOCK])
def test_a_never_pair_is_allowed_before_it_is_held(
    bob: User, proposal: Proposal, make_proposal: Callable, decision: Decision
) -> None:
    other = make_proposal()
    mine = proposal.pairs.first()
    theirs = other.pairs.get(first=mine.first, second=mine.second)
    decide(bob, proposal, Decision.NEVER, mine)
    with pytest.raises(DecisionError, match=r"are never to be paired\. Allow them first\."):
        decide(bob, other, decision, theirs)
    event = decide(bob, proposal, decision, mine)  # this decision takes its own "never" back
    assert not ForbiddenPair.objects.exists()
    decision_undo(user=bob, proposal=proposal, event=event)
    assert ForbiddenPair.objects.get().proposal is None


def test_a_rejection_does_not_lift_never(bob: User, proposal: Proposal) -> None:
    """It used to leave the pair apart in this proposal alone, and not in the cohort's others."""
    pair = proposal.pairs.first()
    decide(bob, proposal, Decision.NEVER, pair)
    with pytest.raises(DecisionError, match="never to be paired, so not in this proposal either"):
        decide(bob, proposal, Decision.REJECT, pair)
    assert ForbiddenPair.objects.get().proposal is None


def test_tabs_filters_and_order_live_in_the_address(
    alice: User, bob: User, client_of: Callable, proposal: Proposal
) -> None:
    accepted, rest = proposal.pairs.first(), proposal.pairs.last()
    decide(bob, proposal, Decision.ACCEPT, accepted)
    client = client_of(alice)
    address = reverse("matching:proposal", args=[proposal.pk])

    def rows(query: str) -> list[int]:
        return [pair.pk for pair in client.get(address + query).context["rows"]]

    assert rows("?tab=accepted") == [accepted.pk]
    assert accepted.pk not in rows("")
    assert rows(f"?tab=all&q=S-{rest.first_number}") == [rest.pk]
    scores = [ProposedPair.objects.get(pk=pk).score for pk in rows("?tab=all&sort=-score")]
    assert scores == sorted(scores, reverse=True)
    assert len(rows("?tab=nonsense&sort=nonsense&page=99")) == 15
    part = client.get(
        address + "?tab=all&q=&sort=-score", headers={"HX-Request": "true", "HX-Target": "proposal"}
    )
    assert part.headers["HX-Push-Url"] == f"{address}?tab=all&sort=-score"
    weak = rows("?tab=all&against=4")
    assert all("|4|" in ProposedPair.objects.get(pk=pk).weak for pk in weak)


def test_the_card_adds_up_as_printed(alice: User, client_of: Callable, proposal: Proposal) -> None:
    address = reverse("matching:proposal", args=[proposal.pk])
    for pair in proposal.pairs.all():
        card = client_of(alice).get(f"{address}?pair={pair.pk}").context["card"]
        assert card.average + card.in_favour - card.against == pytest.approx(card.score, abs=1e-9)
        listed = sum(reason.amount for reason in card.reasons) + card.smaller
        assert listed == pytest.approx(card.in_favour - card.against, abs=1e-9)
        assert card.score == pytest.approx(pair.score, abs=0.0051)
        partners = [p.number for p in card.next_of_first + card.next_of_second]
        assert pair.second_number not in [p.number for p in card.next_of_first]
        assert all(partner.partner_now for partner in card.next_of_first)
        assert len(partners) == 6


def test_a_card_reads_the_answers_of_the_cohort_once(
    alice: User, client_of: Callable, proposal: Proposal
) -> None:
    """Every click on a row read them twice, and counted and summed what a card does not show."""
    client, pair = client_of(alice), proposal.pairs.first()
    card = reverse("matching:pair", args=[proposal.pk, pair.pk])
    page = reverse("matching:proposal", args=[proposal.pk]) + f"?pair={pair.pk}"
    forget_surveys()
    for address, headers, most, n_reads in ((card, HTMX, 18, 1), (page, {}, 42, 0)):
        with CaptureQueriesContext(connection) as queries:
            assert "For and against" in client.get(address, headers=headers).content.decode()
        reads = [q for q in queries if '"cohorts_student"."answers"' in q["sql"]]
        assert len(reads) == n_reads
        assert len(queries) <= most


@pytest.mark.parametrize("state", list(PairState))
def test_the_card_offers_every_other_decision(
    bob: User, client_of: Callable, proposal: Proposal, state: PairState
) -> None:
    """Rejecting stood in the bar of marked rows alone, and a phone marks no rows."""
    pair = proposal.pairs.first()
    ProposedPair.objects.filter(pk=pair.pk).update(state=state)
    note_changes(proposal, 0)
    address = reverse("matching:pair", args=[proposal.pk, pair.pk])
    card = client_of(bob).get(address, headers=HTMX).content.decode()
    offered = set(re.findall(r'name="decision" value="(\w+)"', card))
    first = "reopen" if state in HELD_STATES else "accept"
    others = {PairState.REJECTED: {"lock", "never"}, PairState.NEVER: {"lock"}}
    others[PairState.LOCKED] = set()
    assert offered == {first} | others.get(state, {"lock", "reject", "never"})


def test_the_card_says_to_what_error_shares_are_known(
    alice: User, client_of: Callable, proposal: Proposal
) -> None:
    assert 0.0 <= proposal.figures["probability_error"] < 0.01
    exact = proposal.figures | {"probability_error": 0.0}
    Proposal.objects.filter(pk=proposal.pk).update(figures=exact)
    pair = proposal.pairs.first()
    address = reverse("matching:proposal", args=[proposal.pk]) + f"?pair={pair.pk}"
    assert "standard error" not in client_of(alice).get(address).content.decode()
    figures = proposal.figures | {"probability_error": 0.004}
    Proposal.objects.filter(pk=proposal.pk).update(figures=figures)
    page = client_of(alice).get(address).content.decode()
    assert "Shares of this proposal are known to a standard error of 0.4" in page
    unknown = proposal.figures | {"probability_error": None}
    Proposal.objects.filter(pk=proposal.pk).update(figures=unknown)
    page = client_of(alice).get(address).content.decode()
    assert "standard error" not in page
    assert "so that no error is known" in page


def test_rights_and_walls(
    alice: User, mallory: User, client_of: Callable, proposal: Proposal
) -> None:
    pair = proposal.pairs.first()
    for name, arguments in (
        ("decide", [proposal.pk]),
        ("rule", [proposal.pk]),
        ("swap", [proposal.pk]),
        ("undo", [proposal.pk, 1]),
        ("originals", [proposal.pk, pair.pk]),
    ):
        address = reverse(f"matching:{name}", args=arguments)
        assert client_of(alice).post(address).status_code == 403, name
        assert client_of(mallory).post(address).status_code == 404, name
    card = reverse("matching:pair", args=[proposal.pk, pair.pk])
    assert client_of(mallory).get(card, headers={"HX-Request": "true"}).status_code == 404
    assert client_of(alice).get(card, headers={"HX-Request": "true"}).status_code == 200


def test_original_ids_are_shown_on_request_and_audited(
    bob: User, client_of: Callable, proposal: Proposal
) -> None:
    pair, client = proposal.pairs.first(), client_of(bob)
    page = client.get(reverse("matching:proposal", args=[proposal.pk]) + f"?pair={pair.pk}")
    assert pair.first.original_id not in page.content.decode()
    answer = client.post(reverse("matching:originals", args=[proposal.pk, pair.pk]))
    assert pair.first.original_id in answer.content.decode()
    assert AuditLine.objects.filter(verb="looked up ids", details__pairs=[pair.label]).exists()


def test_nonsense_is_refused_with_a_sentence(
    bob: User, client_of: Callable, proposal: Proposal
) -> None:
    client = client_of(bob)
    assert "no such decision" in post(client, proposal, "marry", proposal.pairs.first())
    assert "Mark at least one pair" in post(client, proposal, "accept")
    assert not proposal.pairs.exclude(state=PairState.OPEN).exists()


@pytest.mark.parametrize("words", ["S-{}  S-{}", "S-{} + S-{}", "{}, s{}", "S {} & {}"])
def test_search_finds_a_pair(
    bob: User, client_of: Callable, proposal: Proposal, words: str
) -> None:
    pair = proposal.pairs.first()
    query = words.format(pair.first_number, pair.second_number)
    found = client_of(bob).get("/search/", {"q": query})
    assert found.status_code == 302
    assert f"pair={pair.pk}" in found.headers["Location"]


def test_search_takes_no_other_id_for_one_on_screen(
    bob: User, client_of: Callable, proposal: Proposal
) -> None:
    pair = proposal.pairs.first()
    page = client_of(bob).get("/search/", {"q": f"A-{pair.first_number}"})
    assert f"pair={pair.pk}" not in page.content.decode()


def test_the_page_counts_the_pairs_that_an_export_holds(bob: User, proposal: Proposal) -> None:
    rejected, forbidden, *_ = proposal.pairs.all()
    decide(bob, proposal, Decision.REJECT, rejected)
    ForbiddenPair.objects.create(
        cohort_id=proposal.cohort_id, first=forbidden.first, second=forbidden.second
    )
    states = forbidden_pairs(proposal).values_list("state", flat=True)
    counted = count_standing(pair_counts(proposal), states)
    assert counted == standing_pairs(proposal).count() == proposal.pairs.count() - 2
