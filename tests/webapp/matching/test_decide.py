"""Deciding: every state, undo, two people at once, and the table that shows it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.matching.conftest import acts_of, two_of
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.selectors.surveys import forget_surveys
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import HELD_STATES, PairState, PlacedPair, Placement, PlacementEvent
from webapp.housing.pairs.decisions import Decision, pairs_decide
from webapp.housing.pairs.rules import held_pairs
from webapp.housing.pairs.swaps import pairs_swap
from webapp.housing.pairs.table import count_standing, forbidden_pairs, pair_counts, standing_pairs
from webapp.housing.services.undo import decision_undo
from webapp.matching.models import ForbiddenPair

HTMX = {"HX-Request": "true"}


def decide(user: User, placement: Placement, decision: Decision, *pairs: PlacedPair) -> Any:
    versions = {pair.pk: pair.version for pair in pairs}
    event = pairs_decide(user=user, placement=placement, decision=decision, versions=versions)
    for pair in pairs:
        pair.refresh_from_db()
    return event


def post(client: Any, placement: Placement, decision: str, *pairs: PlacedPair, **data: str) -> Page:
    address = reverse("housing:pairs-decide", args=[placement.pk])
    values = {"decision": decision, "pair": [f"{p.pk}:{p.version}" for p in pairs], **data}
    return Page(client.post(address, values, follow=True))


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
    bob: User, client_of: Callable, placement: Placement, decision: str, state: PairState
) -> None:
    client, pair = client_of(bob), placement.pairs.first()
    page = post(client, placement, decision, pair)
    pair.refresh_from_db()
    assert (pair.state, pair.decided_by) == (state, "bob")
    assert page.one("status").says(pair.label)
    assert page.one("status").has("button", "Undo")
    assert AuditLine.objects.filter(details__pairs=[pair.label], user=bob).exists()
    event = acts_of(placement).get()
    client.post(reverse("housing:placement-undo", args=[placement.pk, event.pk]))
    pair.refresh_from_db()
    assert (pair.state, pair.decided_by) == (PairState.OPEN, "")
    assert not ForbiddenPair.objects.exists()
    placement.refresh_from_db()
    assert placement.changes == 0


def test_many_pairs_are_decided_and_undone_together(bob: User, placement: Placement) -> None:
    pairs = list(placement.pairs.all()[:5])
    event = decide(bob, placement, Decision.ACCEPT, *pairs)
    assert event.sentence == "5 pairs accepted."
    assert placement.pairs.filter(state=PairState.ACCEPTED).count() == 5
    decision_undo(user=bob, placement=placement, event=event)
    assert not placement.pairs.exclude(state=PairState.OPEN).exists()
    with pytest.raises(PlacesChangedError, match="undone already"):
        decision_undo(user=bob, placement=placement, event=event)


def test_who_comes_second_is_told_and_nothing_is_lost(
    bob: User, carol: User, client_of: Callable, placement: Placement
) -> None:
    seen_by_both = placement.pairs.first()
    post(client_of(bob), placement, "lock", seen_by_both)
    page = post(client_of(carol), placement, "never", seen_by_both)
    fresh = placement.pairs.get(pk=seen_by_both.pk)
    assert (fresh.state, fresh.decided_by) == (PairState.LOCKED, "bob")
    assert page.one("alert").says("locked")
    said = page.one("alert")
    assert said.says("Nothing was changed") or said.says("Release the lock first")


def test_a_stale_version_changes_none_of_many(bob: User, carol: User, placement: Placement) -> None:
    first, second = placement.pairs.all()[:2]
    stale = {first.pk: first.version, second.pk: second.version}
    decide(carol, placement, Decision.ACCEPT, second)
    with pytest.raises(PlacesChangedError, match="accepted” by carol"):
        pairs_decide(user=bob, placement=placement, decision=Decision.REJECT, versions=stale)
    first.refresh_from_db()
    assert first.state == PairState.OPEN


def test_undo_gives_way_to_a_later_decision(bob: User, carol: User, placement: Placement) -> None:
    pair = placement.pairs.first()
    event = decide(bob, placement, Decision.ACCEPT, pair)
    decide(carol, placement, Decision.LOCK, pair)
    with pytest.raises(PlacesChangedError):
        decision_undo(user=bob, placement=placement, event=event)
    pair.refresh_from_db()
    assert pair.state == PairState.LOCKED
    assert PlacementEvent.objects.get(pk=event.pk).undone_at is None


def test_a_lock_must_be_released_first(bob: User, placement: Placement) -> None:
    pair = placement.pairs.first()
    decide(bob, placement, Decision.LOCK, pair)
    with pytest.raises(HousingError, match="Release the lock first"):
        decide(bob, placement, Decision.NEVER, pair)
    decide(bob, placement, Decision.REOPEN, pair)
    decide(bob, placement, Decision.NEVER, pair)
    assert pair.state == PairState.NEVER


def test_never_holds_for_the_cohort_and_reject_for_the_proposal(
    bob: User, placement: Placement
) -> None:
    first, second = placement.pairs.all()[:2]
    decide(bob, placement, Decision.REJECT, first)
    decide(bob, placement, Decision.NEVER, second)
    assert ForbiddenPair.objects.get(first=first.first).placement == placement
    assert ForbiddenPair.objects.get(first=second.first).placement is None


@pytest.mark.parametrize("decision", [Decision.REJECT, Decision.REOPEN, Decision.NEVER])
def test_a_decision_elsewhere_leaves_a_never_pair_alone(
    bob: User, placement: Placement, make_pairs: Callable, decision: Decision
) -> None:
    """Any decision in another placement used to allow the pair again."""
    other = make_pairs()
    mine = placement.pairs.first()
    theirs = other.pairs.get(first=mine.first, second=mine.second)
    decide(bob, placement, Decision.NEVER, mine)
    event = decide(bob, other, decision, theirs)
    assert ForbiddenPair.objects.filter(placement=None, first=mine.first).count() == 1
    if decision == Decision.REOPEN:
        decision_undo(user=bob, placement=other, event=event)
    else:  # undo would put them into one room again
        with pytest.raises(HousingError, match="never to share a room"):
            decision_undo(user=bob, placement=other, event=event)
    assert ForbiddenPair.objects.filter(placement=None).count() == 1


@pytest.mark.parametrize("decision", [Decision.ACCEPT, Decision.LOCK])
def test_a_never_pair_is_allowed_before_it_is_held(
    bob: User, placement: Placement, make_pairs: Callable, decision: Decision
) -> None:
    other = make_pairs()
    mine = placement.pairs.first()
    theirs = other.pairs.get(first=mine.first, second=mine.second)
    decide(bob, placement, Decision.NEVER, mine)
    with pytest.raises(HousingError, match=r"are never to be paired\. Allow them first\."):
        decide(bob, other, decision, theirs)
    event = decide(bob, placement, decision, mine)  # this decision takes its own "never" back
    assert not ForbiddenPair.objects.exists()
    decision_undo(user=bob, placement=placement, event=event)
    assert ForbiddenPair.objects.get().placement is None


def test_a_rejection_does_not_lift_never(bob: User, placement: Placement) -> None:
    """It used to leave the pair apart in this placement alone, and not in the cohort's others."""
    pair = placement.pairs.first()
    decide(bob, placement, Decision.NEVER, pair)
    with pytest.raises(HousingError, match="never to be paired, so not in this placement either"):
        decide(bob, placement, Decision.REJECT, pair)
    assert ForbiddenPair.objects.get().placement is None


def test_tabs_filters_and_order_live_in_the_address(
    alice: User, bob: User, client_of: Callable, placement: Placement
) -> None:
    accepted, rest = placement.pairs.first(), placement.pairs.last()
    decide(bob, placement, Decision.ACCEPT, accepted)
    client = client_of(alice)
    address = reverse("housing:placement", args=[placement.pk])

    def rows(query: str) -> list[int]:
        return [pair.pk for pair in client.get(address + query).context["rows"]]

    assert rows("?tab=accepted") == [accepted.pk]
    assert accepted.pk not in rows("")
    assert rows(f"?tab=all&q=S-{rest.first_number}") == [rest.pk]
    scores = [PlacedPair.objects.get(pk=pk).score for pk in rows("?tab=all&sort=-score")]
    assert scores == sorted(scores, reverse=True)
    assert len(rows("?tab=nonsense&sort=nonsense&page=99")) == 15
    part = client.get(
        address + "?tab=all&q=&sort=-score",
        headers={"HX-Request": "true", "HX-Target": "pairs"},
    )
    assert part.headers["HX-Push-Url"] == f"{address}?tab=all&sort=-score"
    weak = rows("?tab=all&against=4")
    assert all("|4|" in PlacedPair.objects.get(pk=pk).weak for pk in weak)


def test_the_card_adds_up_as_printed(
    alice: User, client_of: Callable, placement: Placement
) -> None:
    address = reverse("housing:placement", args=[placement.pk])
    for pair in placement.pairs.all():
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
    alice: User, client_of: Callable, placement: Placement
) -> None:
    """Every click on a row read them twice, and counted and summed what a card does not show."""
    client, pair = client_of(alice), placement.pairs.first()
    card = reverse("housing:pair", args=[placement.pk, pair.pk])
    page = reverse("housing:placement", args=[placement.pk]) + f"?pair={pair.pk}"
    forget_surveys()
    for address, headers, most, n_reads in ((card, HTMX, 15, 1), (page, {}, 21, 0)):
        with CaptureQueriesContext(connection) as queries:
            assert Page(client.get(address, headers=headers)).has("heading", "For and against")
        reads = [q for q in queries if '"cohorts_student"."answers"' in q["sql"]]
        assert len(reads) == n_reads
        assert len(queries) <= most


def test_a_decision_asks_few_queries(bob: User, client_of: Callable, placement: Placement) -> None:
    """It read the rules, the days and the rooms of its pair twice, and the placement four times."""
    client, (first, pair) = client_of(bob), two_of(placement)
    address = reverse("housing:pairs-decide", args=[placement.pk])
    for one, most in ((first, 100), (pair, 37)):  # the first one reads what a process keeps
        sent = {"decision": "accept", "pair": f"{one.pk}:{one.version}"}
        with CaptureQueriesContext(connection) as queries:
            assert client.post(address, sent, headers=HTMX).status_code == 200
        assert len(queries) <= most


@pytest.mark.any_database  # the plan is that of SQLite
def test_held_pairs_are_found_by_an_index(placement: Placement) -> None:
    """In the order of students, every page read all 5,000 pairs to find those that are held."""
    held = held_pairs(placement).values_list("first_number", "second_number")
    assert "placement_id=? AND state=?" in held.explain()


@pytest.mark.parametrize("state", list(PairState))
def test_the_card_offers_every_other_decision(
    bob: User, client_of: Callable, placement: Placement, state: PairState
) -> None:
    """Rejecting stood in the bar of marked rows alone, and a phone marks no rows."""
    pair, other = two_of(placement)
    if state == PairState.SWAPPED:
        versions = {one.pk: one.version for one in (pair, other)}
        pairs_swap(
            user=bob,
            placement=placement,
            student=pair.first_number,
            partner=other.first_number,
            versions=versions,
        )
    elif state != PairState.OPEN:
        decisions = {
            PairState.ACCEPTED: Decision.ACCEPT,
            PairState.LOCKED: Decision.LOCK,
            PairState.REJECTED: Decision.REJECT,
            PairState.NEVER: Decision.NEVER,
        }
        decide(bob, placement, decisions[state], pair)
    address = reverse("housing:pair", args=[placement.pk, pair.pk])
    card = Page(client_of(bob).get(address, headers=HTMX))
    offered = set(card.element.xpath("//*[@name='decision']/@value"))
    first = "reopen" if state in HELD_STATES else "accept"
    others = {PairState.REJECTED: {"lock", "never"}, PairState.NEVER: {"lock"}}
    others[PairState.LOCKED] = set()
    assert offered == {first} | others.get(state, {"lock", "reject", "never"})


def test_the_card_says_to_what_error_shares_are_known(
    alice: User, client_of: Callable, placement: Placement
) -> None:
    assert 0.0 <= placement.figures["probability_error"] < 0.01
    exact = placement.figures | {"probability_error": 0.0}
    Placement.objects.filter(pk=placement.pk).update(figures=exact)
    pair = placement.pairs.first()
    address = reverse("housing:placement", args=[placement.pk]) + f"?pair={pair.pk}"
    assert not Page(client_of(alice).get(address)).says("standard error")
    figures = placement.figures | {"probability_error": 0.004}
    Placement.objects.filter(pk=placement.pk).update(figures=figures)
    page = Page(client_of(alice).get(address))
    card = page.one("region", "For and against")
    assert card.says("Shares of this placement are known to a standard error of 0.4")
    unknown = placement.figures | {"probability_error": None}
    Placement.objects.filter(pk=placement.pk).update(figures=unknown)
    page = Page(client_of(alice).get(address))
    assert not page.says("standard error")
    assert page.one("region", "For and against").says("so that no error is known")


def test_rights_and_walls(
    alice: User, mallory: User, client_of: Callable, placement: Placement
) -> None:
    pair = placement.pairs.first()
    for name, arguments in (
        ("pairs-decide", [placement.pk]),
        ("pairs-rule", [placement.pk]),
        ("pairs-swap", [placement.pk]),
        ("placement-undo", [placement.pk, 1]),
        ("pair-originals", [placement.pk, pair.pk]),
    ):
        address = reverse(f"housing:{name}", args=arguments)
        assert client_of(alice).post(address).status_code == 403, name
        assert client_of(mallory).post(address).status_code == 404, name
    card = reverse("housing:pair", args=[placement.pk, pair.pk])
    assert client_of(mallory).get(card, headers={"HX-Request": "true"}).status_code == 404
    assert client_of(alice).get(card, headers={"HX-Request": "true"}).status_code == 200


def test_original_ids_are_shown_on_request_and_audited(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    pair, client = placement.pairs.first(), client_of(bob)
    page = client.get(reverse("housing:placement", args=[placement.pk]) + f"?pair={pair.pk}")
    assert pair.first.original_id not in Page(page).source
    answer = client.post(reverse("housing:pair-originals", args=[placement.pk, pair.pk]))
    assert Page(answer).said_of(f"S-{pair.first_number}") == pair.first.original_id
    assert AuditLine.objects.filter(verb="looked up ids", details__pairs=[pair.label]).exists()


def test_nonsense_is_refused_with_a_sentence(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    client = client_of(bob)
    page = post(client, placement, "marry", placement.pairs.first())
    assert page.one("alert").says("no such decision")
    assert post(client, placement, "accept").one("alert").says("Mark at least one pair")
    assert not placement.pairs.exclude(state=PairState.OPEN).exists()


@pytest.mark.parametrize("words", ["S-{}  S-{}", "S-{} + S-{}", "{}, s{}", "S {} & {}"])
def test_search_finds_a_pair(
    bob: User, client_of: Callable, placement: Placement, words: str
) -> None:
    pair = placement.pairs.first()
    query = words.format(pair.first_number, pair.second_number)
    found = client_of(bob).get("/search/", {"q": query})
    assert found.status_code == 302
    assert f"pair={pair.pk}" in found.headers["Location"]


def test_search_takes_no_other_id_for_one_on_screen(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    pair = placement.pairs.first()
    page = client_of(bob).get("/search/", {"q": f"A-{pair.first_number}"})
    assert f"pair={pair.pk}" not in Page(page).source


def test_the_page_counts_the_pairs_that_an_export_holds(bob: User, placement: Placement) -> None:
    rejected, forbidden, *_ = placement.pairs.all()
    decide(bob, placement, Decision.REJECT, rejected)
    ForbiddenPair.objects.create(
        cohort_id=placement.cohort_id, first=forbidden.first, second=forbidden.second
    )
    states = forbidden_pairs(placement).values_list("state", flat=True)
    counted = count_standing(pair_counts(placement), states)
    assert counted == standing_pairs(placement).count() == placement.pairs.count() - 2
