"""Swaps show both new pairs and their cost first."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.matching.conftest import run_waiting, two_of
from webapp.accounts.models import User
from webapp.cohorts.selectors.surveys import forget_surveys
from webapp.matching.errors import DecisionError, PairsChangedError
from webapp.matching.models import (
    Decision,
    PairState,
    Proposal,
    ProposedPair,
)
from webapp.matching.services.decisions import decision_undo, pairs_decide
from webapp.matching.services.proposals import (
    proposal_compute,
)
from webapp.matching.services.swaps import pairs_swap, swap_offer


def do_swap(user: User, proposal: Proposal, first: ProposedPair, second: ProposedPair) -> object:
    return pairs_swap(
        user=user,
        proposal=proposal,
        student=first.first_number,
        partner=second.first_number,
        versions={first.pk: first.version, second.pk: second.version},
    )


def test_the_offer_is_what_the_swap_does_and_undo_takes_it_back(
    bob: User, proposal: Proposal
) -> None:
    first, second = two_of(proposal)
    offer = swap_offer(proposal, first.first_number, second.first_number)
    assert offer.change <= 1e-9  # the proposal was the best set of pairs
    forget_surveys()
    with CaptureQueriesContext(connection) as queries:
        event = do_swap(bob, proposal, first, second)
    reads = [q for q in queries if q["sql"].startswith('SELECT "cohorts_student"."number" AS')]
    assert len([q for q in reads if "answers" in q["sql"]]) == 1
    swapped = list(proposal.pairs.filter(pk__in=(first.pk, second.pk)))
    assert {pair.label for pair in swapped} == {pair.label for pair in offer.new}
    assert all(pair.state == PairState.SWAPPED for pair in swapped)
    before = first.score + second.score
    assert sum(pair.score for pair in swapped) - before == pytest.approx(offer.change)
    decision_undo(user=bob, proposal=proposal, event=event)
    for old in (first, second):
        again = proposal.pairs.get(pk=old.pk)
        assert (again.label, again.score, again.state) == (old.label, old.score, PairState.OPEN)
    proposal.refresh_from_db()
    assert proposal.changes == 0


def test_a_swap_survives_proposing_again(bob: User, proposal: Proposal) -> None:
    first, second = two_of(proposal)
    do_swap(bob, proposal, first, second)
    labels = {p.label for p in proposal.pairs.filter(state=PairState.SWAPPED)}
    proposal.refresh_from_db()
    proposal_compute(user=bob, proposal=proposal)
    run_waiting()
    assert {p.label for p in proposal.pairs.filter(state=PairState.SWAPPED)} == labels


def test_locks_rules_and_other_people_stop_a_swap(
    bob: User, carol: User, proposal: Proposal
) -> None:
    first, second = two_of(proposal)
    man = two_of(proposal, "M")[0]
    with pytest.raises(DecisionError, match="would not have the same Gender"):
        swap_offer(proposal, first.first_number, man.first_number)
    with pytest.raises(DecisionError, match="are a pair already"):
        swap_offer(proposal, first.first_number, first.second_number)
    with pytest.raises(DecisionError, match="in no pair"):
        swap_offer(proposal, first.first_number, 9999)
    versions = {second.pk: second.version}
    pairs_decide(user=carol, proposal=proposal, decision=Decision.ACCEPT, versions=versions)
    with pytest.raises(PairsChangedError, match="by carol"):
        do_swap(bob, proposal, first, second)
    second.refresh_from_db()
    pairs_decide(
        user=carol,
        proposal=proposal,
        decision=Decision.LOCK,
        versions={second.pk: second.version},
    )
    second.refresh_from_db()
    with pytest.raises(DecisionError, match="is locked"):
        do_swap(bob, proposal, first, second)
    assert not proposal.pairs.filter(state=PairState.SWAPPED).exists()


def test_the_dialog_shows_both_new_pairs_and_the_cost(
    bob: User, client_of: Callable, proposal: Proposal
) -> None:
    first, second = two_of(proposal)
    address = reverse("matching:swap", args=[proposal.pk])
    query = {"student": f"S-{first.first_number}", "partner": f"S-{second.first_number}"}
    offer = swap_offer(proposal, first.first_number, second.first_number)
    for headers in ({}, {"HX-Request": "true"}):
        page = client_of(bob).get(address, query, headers=headers).content.decode()
        assert all(pair.label in page for pair in offer.new)
        assert "nats" in page
    page = client_of(bob).get(address, query | {"partner": "S-9999"}).content.decode()
    assert "S-9999 is in no pair of this proposal. Nothing was changed." in page
