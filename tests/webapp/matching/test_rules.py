"""Rules contradict each other by name, offer ways out, and can be undone."""

import re
from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.urls import reverse

from tests.webapp.matching.conftest import run_waiting, two_of
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.matching.errors import DecisionError, PairsChangedError
from webapp.matching.models import (
    Decision,
    ForbiddenPair,
    LearnedModel,
    PairState,
    Proposal,
)
from webapp.matching.services.decisions import decision_undo, pairs_decide
from webapp.matching.services.proposals import (
    proposal_compute,
    proposal_conflicts,
    proposal_create,
)
from webapp.matching.services.rule_record import record_rules
from webapp.matching.services.rules import rule_change


@pytest.mark.parametrize("typed", ["A-{}", "2025-{}", "S{}A", "{} 7"])
def test_an_id_of_another_kind_is_refused_not_read_as_a_student(
    bob: User, client_of: Callable, proposal: Proposal, typed: str
) -> None:
    """The digits of a housing id A-1042 used to lock, forbid or swap S-1042, somebody else."""
    first, second = two_of(proposal)
    a, b = typed.format(first.first_number), f"S-{second.first_number}"
    sentence = f"“{a}” is not an id on screen. Type one such as S-1042."
    client = client_of(bob)
    rule, swap = (reverse(f"matching:{name}", args=[proposal.pk]) for name in ("rule", "swap"))
    for action in ("lock", "never", "single"):
        page = client.post(rule, {"action": action, "first": a, "second": b}, follow=True)
        assert sentence in page.content.decode()
    page = client.get(swap, {"student": a, "partner": b})
    assert sentence in page.content.decode()
    assert "offer" not in page.context
    versions = [f"{pair.pk}:{pair.version}" for pair in (first, second)]
    client.post(swap, {"student": a, "partner": b, "pair": versions})
    assert not proposal.events.exists()
    assert not client.get(reverse("matching:proposal", args=[proposal.pk]), {"q": a}).context[
        "rows"
    ]


@pytest.mark.parametrize("typed", ["S-{}", "s{}", " {} ", "s-{}", "S {}"])
def test_an_id_on_screen_is_read_however_it_is_typed(
    bob: User, client_of: Callable, proposal: Proposal, typed: str
) -> None:
    number = two_of(proposal)[0].first_number
    address = reverse("matching:rule", args=[proposal.pk])
    client_of(bob).post(address, {"action": "single", "first": typed.format(number)})
    proposal.refresh_from_db()
    assert proposal.singles == [number]


def test_a_student_locked_twice_is_named_with_one_button_each(
    bob: User, client_of: Callable, proposal: Proposal
) -> None:
    first, second = two_of(proposal)
    a, b, c = first.first_number, first.second_number, second.first_number
    client = client_of(bob)
    rule = reverse("matching:rule", args=[proposal.pk])
    client.post(rule, {"action": "lock", "first": f"S-{a}", "second": f"S-{b}"})
    client.post(rule, {"action": "lock", "first": f"S-{a}", "second": f"S-{c}"})
    page = client.get(reverse("matching:proposal", args=[proposal.pk])).content.decode()
    assert f"S-{a} is locked twice" in page
    assert "Solve 1 conflict to re-propose" in page
    assert f"Keep S-{b}" in page
    client.post(rule, {"action": "keep_lock", "first": str(a), "second": str(c)})
    assert not proposal_conflicts(proposal)
    proposal.refresh_from_db()
    proposal_compute(user=bob, proposal=proposal)
    run_waiting()
    low, high = sorted((a, c))
    kept = proposal.pairs.get(first_number=low, second_number=high)
    assert kept.state == PairState.LOCKED


def test_a_lock_against_never_offers_both_ways(bob: User, proposal: Proposal) -> None:
    first, second = two_of(proposal)
    a, b = sorted((first.first_number, second.first_number))
    rule_change(user=bob, proposal=proposal, action="never", first=a, second=b)
    rule_change(user=bob, proposal=proposal, action="lock", first=a, second=b)
    (conflict,) = proposal_conflicts(proposal)
    assert "locked together and never to be paired" in conflict.headline
    assert [way.action for way in conflict.ways_out] == ["allow", "release"]
    for way in conflict.ways_out[:1]:
        rule_change(
            user=bob, proposal=proposal, action=way.action, first=way.first, second=way.second
        )
    assert not proposal_conflicts(proposal)
    assert not ForbiddenPair.objects.exists()


def test_a_rejected_pair_stays_listed_and_can_be_allowed_again(
    bob: User, client_of: Callable, proposal: Proposal
) -> None:
    """After proposing anew it used to be shown nowhere, and bound all the same."""
    pair = two_of(proposal)[0]
    numbers = {"first": pair.first_number, "second": pair.second_number}
    versions = {pair.pk: pair.version}
    pairs_decide(user=bob, proposal=proposal, decision=Decision.REJECT, versions=versions)
    proposal_compute(user=bob, proposal=proposal)
    run_waiting()
    client, address = client_of(bob), reverse("matching:proposal", args=[proposal.pk])
    page = client.get(address, {"tab": "rejected"})
    assert [str(rule) for rule in page.context["rows"]] == [pair.label]
    assert "Allow again" in page.content.decode()
    assert not client.get(address, {"tab": "never"}).context["rows"]
    client.post(reverse("matching:rule", args=[proposal.pk]), {"action": "unreject", **numbers})
    assert not ForbiddenPair.objects.exists()
    assert "tab-rejected" not in client.get(address).content.decode()
    proposal.refresh_from_db()
    proposal_compute(user=bob, proposal=proposal)
    run_waiting()
    assert proposal.pairs.filter(**{f"{k}_number": n for k, n in numbers.items()}).exists()


def test_allowing_a_rejected_pair_leaves_never_of_another_proposal(
    bob: User, client_of: Callable, proposal: Proposal, make_proposal: Callable
) -> None:
    """The button of the tab "Rejected" used to lift what holds for the whole cohort."""
    other, pair = make_proposal(), two_of(proposal)[0]
    numbers = {"first": pair.first_number, "second": pair.second_number}
    versions = {pair.pk: pair.version}
    pairs_decide(user=bob, proposal=proposal, decision=Decision.REJECT, versions=versions)
    rule_change(user=bob, proposal=other, action="never", **numbers)
    client, address = client_of(bob), reverse("matching:proposal", args=[proposal.pk])
    actions = {}
    for tab in ("rejected", "never"):
        page = client.get(address, {"tab": tab}).content.decode()
        table = page.split('class="table table--cards"')[1].split("</table>")[0]
        actions[tab] = re.search(r'name="action" value="(\w+)"', table)[1]
    sent = {"action": actions["rejected"], **numbers}
    client.post(reverse("matching:rule", args=[proposal.pk]), sent)
    assert ForbiddenPair.objects.get().proposal is None
    pair.refresh_from_db()
    assert pair.state == PairState.OPEN
    assert "no longer rejected, but never to be paired." in proposal.events.first().sentence
    sent["action"] = actions["never"]
    client.post(reverse("matching:rule", args=[proposal.pk]), sent)
    assert not ForbiddenPair.objects.exists()


@pytest.mark.parametrize("action", ["lock", "never"])
def test_a_rejection_gives_way_to_a_later_rule(bob: User, proposal: Proposal, action: str) -> None:
    """A lock used to clash with it as with "never to be paired"; under "never" it lay hidden."""
    pair = two_of(proposal)[0]
    versions = {pair.pk: pair.version}
    pairs_decide(user=bob, proposal=proposal, decision=Decision.REJECT, versions=versions)
    before = record_rules(proposal)
    numbers = {"first": pair.first_number, "second": pair.second_number}
    event = rule_change(user=bob, proposal=proposal, action=action, **numbers)
    assert not ForbiddenPair.objects.filter(proposal=proposal).exists()
    assert not proposal_conflicts(proposal)
    decision_undo(user=bob, proposal=proposal, event=event)
    assert record_rules(proposal) == before
    pair.refresh_from_db()
    assert pair.state == PairState.REJECTED


def test_a_lock_across_a_same_rule_offers_to_drop_the_rule(bob: User, proposal: Proposal) -> None:
    woman, man = two_of(proposal)[0], two_of(proposal, "M")[0]
    rule_change(
        user=bob,
        proposal=proposal,
        action="lock",
        first=woman.first_number,
        second=man.first_number,
    )
    conflicts = proposal_conflicts(proposal)
    labels = [way.label for conflict in conflicts for way in conflict.ways_out]
    assert "Drop “same Gender”" in labels
    rule_change(user=bob, proposal=proposal, action="relax", column="Gender")
    proposal.refresh_from_db()
    assert proposal.same == []
    assert not proposal_conflicts(proposal)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"action": "lock", "first": 1001, "second": 1001}, "paired with themselves"),
        ({"action": "lock", "first": 1001, "second": 4711}, "S-4711 is not a student"),
        ({"action": "single", "first": 4711}, "S-4711 is not a student"),
        ({"action": "require", "column": "Hall"}, "not a constraint column"),
        ({"action": "relax", "column": "Hall"}, "not a constraint column"),
        ({"action": "abolish"}, "no such rule"),
    ],
)
def test_senseless_rules_change_nothing(
    bob: User, proposal: Proposal, values: dict, sentence: str
) -> None:
    with pytest.raises(DecisionError, match=sentence):
        rule_change(user=bob, proposal=proposal, **values)
    proposal.refresh_from_db()
    assert proposal.changes == 0


@pytest.mark.parametrize(
    ("done", "action"),
    [
        ("", "release"),
        ("", "allow"),
        ("never", "unreject"),
        ("", "unsingle"),
        ("", "require"),
        ("relax", "relax"),
        ("single", "single"),
        ("never", "never"),
        ("lock", "lock"),
        ("", "keep_lock"),
    ],
)
def test_a_rule_that_changes_nothing_is_no_change(
    bob: User, proposal: Proposal, done: str, action: str
) -> None:
    pair = two_of(proposal)[0]
    students = {"first": pair.first_number, "second": pair.second_number, "column": "Gender"}
    if done:
        rule_change(user=bob, proposal=proposal, action=done, **students)
    with pytest.raises(DecisionError, match="That is so already"):
        rule_change(user=bob, proposal=proposal, action=action, **students)
    proposal.refresh_from_db()
    assert proposal.events.count() == bool(done)
    assert proposal.changes == (done not in ("", "lock"))


def test_never_pairs_hold_in_the_next_proposal(
    bob: User, proposal: Proposal, make_proposal: Callable, first_years: Cohort
) -> None:
    pair = proposal.pairs.first()
    versions = {pair.pk: pair.version}
    pairs_decide(user=bob, proposal=proposal, decision=Decision.NEVER, versions=versions)
    again = make_proposal()
    assert not again.pairs.filter(first=pair.first, second=pair.second).exists()


@pytest.mark.parametrize("action", ["lock", "never", "single", "relax", "release", "keep_lock"])
def test_a_rule_change_is_undone_exactly(bob: User, proposal: Proposal, action: str) -> None:
    first, second = two_of(proposal)
    a, b = first.first_number, first.second_number
    pairs_decide(
        user=bob, proposal=proposal, decision=Decision.ACCEPT, versions={first.pk: first.version}
    )
    if action == "lock":
        b = second.second_number
    if action == "keep_lock":  # releases the accepted pair and the other lock
        b = second.first_number
        rule_change(
            user=bob, proposal=proposal, action="lock", first=a, second=second.second_number
        )

    def state() -> tuple[object, ...]:
        fresh = Proposal.objects.get(pk=proposal.pk)
        pairs = fresh.pairs.order_by("pk").values_list("pk", "state", "decided_by", "decided_at")
        return record_rules(fresh), fresh.changes, list(pairs)

    before = state()
    event = rule_change(
        user=bob, proposal=proposal, action=action, first=a, second=b, column="Gender"
    )
    assert state() != before
    assert "as before" in decision_undo(user=bob, proposal=proposal, event=event)
    assert state() == before
    with pytest.raises(PairsChangedError, match="already undone"):
        decision_undo(user=bob, proposal=proposal, event=event)


def test_undo_of_a_rule_leaves_a_later_decision_alone(
    bob: User, carol: User, proposal: Proposal
) -> None:
    pair = two_of(proposal)[0]
    event = rule_change(
        user=bob,
        proposal=proposal,
        action="never",
        first=pair.first_number,
        second=pair.second_number,
    )
    pair.refresh_from_db()
    versions = {pair.pk: pair.version}
    pairs_decide(user=carol, proposal=proposal, decision=Decision.ACCEPT, versions=versions)
    with pytest.raises(PairsChangedError, match="by carol"):
        decision_undo(user=bob, proposal=proposal, event=event)
    pair.refresh_from_db()
    assert pair.state == PairState.ACCEPTED


def test_the_toast_of_a_rule_offers_undo(
    bob: User, client_of: Callable, proposal: Proposal
) -> None:
    number = two_of(proposal)[0].first_number
    client = client_of(bob)
    address = reverse("matching:rule", args=[proposal.pk])
    page = client.post(address, {"action": "single", "first": f"S-{number}"}, follow=True)
    event = proposal.events.get()
    undo = reverse("matching:undo", args=[proposal.pk, event.pk])
    assert undo in page.content.decode()
    client.post(undo)
    proposal.refresh_from_db()
    assert proposal.singles == []


def test_a_rule_stands_where_there_is_no_room_for_its_pairs(
    bob: User,
    client_of: Callable,
    first_years: Cohort,
    learned: LearnedModel,
    settings: LazySettings,
) -> None:
    """The answer used to say that nothing was saved."""
    Student.objects.filter(cohort=first_years, number=1032).delete()
    Cohort.objects.filter(pk=first_years.pk).update(n_students=31)
    proposal = proposal_create(
        user=bob, name="Odd", cohort=Cohort.objects.get(pk=first_years.pk), model=learned
    )
    settings.ORGANISATION_QUOTA_GB = 0
    address = reverse("matching:rule", args=[proposal.pk])
    change = {"action": "single", "first": "S-1007"}
    page = client_of(bob).post(address, change, follow=True).content.decode()
    proposal.refresh_from_db()
    assert (proposal.singles, proposal.job) == ([1007], None)
    assert proposal.events.get().sentence in page
    assert "This was not stored or started." in page
    assert "Propose pairs</button>" in page


def test_a_lock_of_a_proposed_pair_holds_at_once(bob: User, proposal: Proposal) -> None:
    """It used to read "to decide" until the pairs were proposed anew, on screen and in exports."""
    pair = two_of(proposal)[0]
    numbers = {"first": pair.first_number, "second": pair.second_number}
    event = rule_change(user=bob, proposal=proposal, action="lock", **numbers)
    pair.refresh_from_db()
    assert (pair.state, pair.decided_by) == (PairState.LOCKED, "bob")
    proposal.refresh_from_db()
    assert proposal.changes == 0  # the pairs are as good as they were
    assert not proposal.locks.exists()
    decision_undo(user=bob, proposal=proposal, event=event)
    assert proposal.pairs.get(pk=pair.pk).state == PairState.OPEN
