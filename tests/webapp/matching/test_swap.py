"""Swaps show both new pairs and their cost first."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.factories.university import run_waiting
from tests.webapp.matching.conftest import two_of
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.selectors.surveys import forget_surveys
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import PairState, PlacedPair, Placement
from webapp.housing.pairs.decisions import Decision, pairs_decide
from webapp.housing.pairs.placing import pairs_compute
from webapp.housing.pairs.swaps import pairs_swap, swap_offer
from webapp.housing.services.undo import decision_undo


def do_swap(user: User, placement: Placement, first: PlacedPair, second: PlacedPair) -> object:
    return pairs_swap(
        user=user,
        placement=placement,
        student=first.first_number,
        partner=second.first_number,
        versions={first.pk: first.version, second.pk: second.version},
    )


def test_the_offer_is_what_the_swap_does_and_undo_takes_it_back(
    bob: User, placement: Placement
) -> None:
    first, second = two_of(placement)
    offer = swap_offer(placement, first.first_number, second.first_number)
    assert offer.change <= 1e-9  # the placement was the best set of pairs
    forget_surveys()
    with CaptureQueriesContext(connection) as queries:
        event = do_swap(bob, placement, first, second)
    reads = [q for q in queries if q["sql"].startswith('SELECT "cohorts_student"."number" AS')]
    assert len([q for q in reads if "answers" in q["sql"]]) == 1
    swapped = list(placement.pairs.filter(pk__in=(first.pk, second.pk)))
    assert {pair.label for pair in swapped} == {pair.label for pair in offer.new}
    assert all(pair.state == PairState.SWAPPED for pair in swapped)
    before = first.score + second.score
    assert sum(pair.score for pair in swapped) - before == pytest.approx(offer.change)
    decision_undo(user=bob, placement=placement, event=event)
    for old in (first, second):
        again = placement.pairs.get(pk=old.pk)
        assert (again.label, again.score, again.state) == (old.label, old.score, PairState.OPEN)
    placement.refresh_from_db()
    assert placement.changes == 0


def test_a_swap_survives_proposing_again(bob: User, placement: Placement) -> None:
    first, second = two_of(placement)
    do_swap(bob, placement, first, second)
    labels = {p.label for p in placement.pairs.filter(state=PairState.SWAPPED)}
    placement.refresh_from_db()
    pairs_compute(user=bob, placement=placement)
    run_waiting()
    assert {p.label for p in placement.pairs.filter(state=PairState.SWAPPED)} == labels


def test_locks_rules_and_other_people_stop_a_swap(
    bob: User, carol: User, placement: Placement
) -> None:
    first, second = two_of(placement)
    man = two_of(placement, "M")[0]
    with pytest.raises(HousingError, match="would not have the same Gender"):
        swap_offer(placement, first.first_number, man.first_number)
    with pytest.raises(HousingError, match="are a pair already"):
        swap_offer(placement, first.first_number, first.second_number)
    with pytest.raises(HousingError, match="in no pair"):
        swap_offer(placement, first.first_number, 9999)
    versions = {second.pk: second.version}
    pairs_decide(user=carol, placement=placement, decision=Decision.ACCEPT, versions=versions)
    with pytest.raises(PlacesChangedError, match="by carol"):
        do_swap(bob, placement, first, second)
    second.refresh_from_db()
    pairs_decide(
        user=carol,
        placement=placement,
        decision=Decision.LOCK,
        versions={second.pk: second.version},
    )
    second.refresh_from_db()
    with pytest.raises(HousingError, match="is locked"):
        do_swap(bob, placement, first, second)
    assert not placement.pairs.filter(state=PairState.SWAPPED).exists()


def test_the_dialog_shows_both_new_pairs_and_the_cost(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    first, second = two_of(placement)
    address = reverse("housing:pairs-swap", args=[placement.pk])
    query = {"student": f"S-{first.first_number}", "partner": f"S-{second.first_number}"}
    offer = swap_offer(placement, first.first_number, second.first_number)
    for headers in ({}, {"HX-Request": "true"}):
        page = Page(client_of(bob).get(address, query, headers=headers))
        assert all(page.says(pair.label) for pair in offer.new)
        assert page.says("nats")
    page = Page(client_of(bob).get(address, query | {"partner": "S-9999"}))
    assert page.has("alert", "S-9999 is in no pair of this placement. Nothing was changed.")
