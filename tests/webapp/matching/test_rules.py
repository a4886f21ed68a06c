"""Rules contradict each other by name, offer ways out, and can be undone."""

from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.urls import reverse

from tests.webapp.factories.university import run_waiting
from tests.webapp.matching.conftest import acts_of, two_of
from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_outlives_a_session, check_refused, field_values
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import PairState, Placement
from webapp.housing.pairs.decisions import Decision, pairs_decide
from webapp.housing.pairs.placing import pair_conflicts, pairs_compute, pairs_create
from webapp.housing.pairs.rule_changes import rule_change
from webapp.housing.pairs.rule_record import record_rules
from webapp.housing.services.undo import decision_undo
from webapp.matching.models import ForbiddenPair, LearnedModel


@pytest.mark.parametrize("typed", ["A-{}", "2025-{}", "S{}A", "{} 7"])
def test_an_id_of_another_kind_is_refused_not_read_as_a_student(
    bob: User, client_of: Callable, placement: Placement, typed: str
) -> None:
    """The digits of a housing id A-1042 used to lock, forbid or swap S-1042, somebody else."""
    first, second = two_of(placement)
    a, b = typed.format(first.first_number), f"S-{second.first_number}"
    sentence = f"“{a}” is nobody in {placement.cohort.name}."
    client = client_of(bob)
    rule = reverse("housing:pairs-rule", args=[placement.pk])
    swap = reverse("housing:pairs-swap", args=[placement.pk])
    for action in ("lock", "never", "single"):
        page = client.post(rule, {"action": action, "first": a, "second": b}, follow=True)
        assert Page(page).one("alert").says(sentence)
    page = client.get(swap, {"student": a, "partner": b})
    assert Page(page).has("alert", sentence)
    assert "offer" not in page.context
    versions = [f"{pair.pk}:{pair.version}" for pair in (first, second)]
    client.post(swap, {"student": a, "partner": b, "pair": versions})
    assert not acts_of(placement).exists()
    assert not client.get(reverse("housing:placement", args=[placement.pk]), {"q": a}).context[
        "rows"
    ]


@pytest.mark.parametrize("typed", ["S-{}", "s{}", " {} ", "s-{}", "S {}"])
def test_an_id_on_screen_is_read_however_it_is_typed(
    bob: User, client_of: Callable, placement: Placement, typed: str
) -> None:
    number = two_of(placement)[0].first_number
    address = reverse("housing:pairs-rule", args=[placement.pk])
    client_of(bob).post(address, {"action": "single", "first": typed.format(number)})
    placement.refresh_from_db()
    assert placement.singles == [number]


def test_a_student_locked_twice_is_named_with_one_button_each(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    first, second = two_of(placement)
    a, b, c = first.first_number, first.second_number, second.first_number
    client = client_of(bob)
    rule = reverse("housing:pairs-rule", args=[placement.pk])
    client.post(rule, {"action": "lock", "first": f"S-{a}", "second": f"S-{b}"})
    client.post(rule, {"action": "lock", "first": f"S-{a}", "second": f"S-{c}"})
    page = Page(client.get(reverse("housing:placement", args=[placement.pk])))
    assert page.has("alert", f"S-{a} is locked twice")
    assert page.has("button", "Solve 1 conflict to pair again")
    assert page.has("button", f"Keep S-{b}")
    client.post(rule, {"action": "keep_lock", "first": str(a), "second": str(c)})
    assert not pair_conflicts(placement)
    placement.refresh_from_db()
    pairs_compute(user=bob, placement=placement)
    run_waiting()
    low, high = sorted((a, c))
    kept = placement.pairs.get(first_number=low, second_number=high)
    assert kept.state == PairState.LOCKED


def test_a_lock_against_never_offers_both_ways(bob: User, placement: Placement) -> None:
    first, second = two_of(placement)
    a, b = sorted((first.first_number, second.first_number))
    rule_change(user=bob, placement=placement, action="never", first=a, second=b)
    rule_change(user=bob, placement=placement, action="lock", first=a, second=b)
    (conflict,) = pair_conflicts(placement)
    assert "locked together and never to be paired" in conflict.headline
    assert [way.action for way in conflict.ways_out] == ["allow", "release"]
    for way in conflict.ways_out[:1]:
        rule_change(
            user=bob, placement=placement, action=way.action, first=way.first, second=way.second
        )
    assert not pair_conflicts(placement)
    assert not ForbiddenPair.objects.exists()


def test_a_rejected_pair_stays_listed_and_can_be_allowed_again(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    """After proposing anew it used to be shown nowhere, and bound all the same."""
    pair = two_of(placement)[0]
    numbers = {"first": pair.first_number, "second": pair.second_number}
    versions = {pair.pk: pair.version}
    pairs_decide(user=bob, placement=placement, decision=Decision.REJECT, versions=versions)
    pairs_compute(user=bob, placement=placement)
    run_waiting()
    client, address = client_of(bob), reverse("housing:placement", args=[placement.pk])
    page = client.get(address, {"tab": "rejected"})
    assert [str(rule) for rule in page.context["rows"]] == [pair.label]
    assert Page(page).has("button", "Allow again")
    assert not client.get(address, {"tab": "never"}).context["rows"]
    client.post(
        reverse("housing:pairs-rule", args=[placement.pk]), {"action": "unreject", **numbers}
    )
    assert not ForbiddenPair.objects.exists()
    assert "tab-rejected" not in Page(client.get(address)).source
    placement.refresh_from_db()
    pairs_compute(user=bob, placement=placement)
    run_waiting()
    assert placement.pairs.filter(**{f"{k}_number": n for k, n in numbers.items()}).exists()


def test_a_refused_rule_keeps_the_typed_names(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    address, pair = reverse("housing:pairs-rule", args=[placement.pk]), two_of(placement)[0]
    client, known = client_of(bob), f"S-{pair.first_number}"
    sent = {"action": "never", "typed_in": "pair", "first": known, "second": "Nobody Such"}
    page = client.post(address, sent)
    check_refused(page, {"second": "Nobody Such"}, field="second", error="Nobody Such")
    assert known in field_values(page, "first")
    assert client.get(address, {"tab": "never"}).url.endswith("?tab=never")
    single = {"action": "single", "typed_in": "single", "first": "S-1"}
    check_refused(client.post(address, single), {"first": "S-1"}, field="first", error="S-1")
    assert client.post(address, {**sent, "typed_in": "nonsense"}).status_code == 302
    assert not ForbiddenPair.objects.exists()
    check_outlives_a_session(client_of, bob, address, {**sent, "second": known})


def test_allowing_a_rejected_pair_leaves_never_of_another_proposal(
    bob: User, client_of: Callable, placement: Placement, make_pairs: Callable
) -> None:
    """The button of the tab "Rejected" used to lift what holds for the whole cohort."""
    other, pair = make_pairs(), two_of(placement)[0]
    numbers = {"first": pair.first_number, "second": pair.second_number}
    versions = {pair.pk: pair.version}
    pairs_decide(user=bob, placement=placement, decision=Decision.REJECT, versions=versions)
    rule_change(user=bob, placement=other, action="never", **numbers)
    client, address = client_of(bob), reverse("housing:placement", args=[placement.pk])
    actions = {}
    for tab in ("rejected", "never"):
        page = Page(client.get(address, {"tab": tab}))
        form = page.one("button", f"Allow again {pair.label}").element.getparent()
        (actions[tab],) = form.xpath("input[@name='action']/@value")
    sent = {"action": actions["rejected"], **numbers}
    client.post(reverse("housing:pairs-rule", args=[placement.pk]), sent)
    assert ForbiddenPair.objects.get().placement is None
    pair.refresh_from_db()
    assert pair.state == PairState.NEVER
    assert "no longer rejected, but never to be paired." in acts_of(placement).first().sentence
    sent["action"] = actions["never"]
    client.post(reverse("housing:pairs-rule", args=[placement.pk]), sent)
    assert not ForbiddenPair.objects.exists()


@pytest.mark.parametrize("action", ["lock", "never"])
def test_a_rejection_gives_way_to_a_later_rule(
    bob: User, placement: Placement, action: str
) -> None:
    """A lock used to clash with it as with "never to be paired"; under "never" it lay hidden."""
    pair = two_of(placement)[0]
    versions = {pair.pk: pair.version}
    pairs_decide(user=bob, placement=placement, decision=Decision.REJECT, versions=versions)
    before = record_rules(placement)
    numbers = {"first": pair.first_number, "second": pair.second_number}
    event = rule_change(user=bob, placement=placement, action=action, **numbers)
    assert not ForbiddenPair.objects.filter(placement=placement).exists()
    assert not pair_conflicts(placement)
    decision_undo(user=bob, placement=placement, event=event)
    assert record_rules(placement) == before
    pair.refresh_from_db()
    assert pair.state == PairState.REJECTED


def test_a_lock_across_a_same_rule_offers_to_drop_the_rule(bob: User, placement: Placement) -> None:
    woman, man = two_of(placement)[0], two_of(placement, "M")[0]
    rule_change(
        user=bob,
        placement=placement,
        action="lock",
        first=woman.first_number,
        second=man.first_number,
    )
    conflicts = pair_conflicts(placement)
    labels = [way.label for conflict in conflicts for way in conflict.ways_out]
    assert "Drop “same Gender”" in labels
    rule_change(user=bob, placement=placement, action="relax", column="Gender")
    placement.refresh_from_db()
    assert placement.same == []
    assert not pair_conflicts(placement)


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
    bob: User, placement: Placement, values: dict, sentence: str
) -> None:
    with pytest.raises(HousingError, match=sentence):
        rule_change(user=bob, placement=placement, **values)
    placement.refresh_from_db()
    assert placement.changes == 0


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
    bob: User, placement: Placement, done: str, action: str
) -> None:
    pair = two_of(placement)[0]
    students = {"first": pair.first_number, "second": pair.second_number, "column": "Gender"}
    if done:
        rule_change(user=bob, placement=placement, action=done, **students)
    with pytest.raises(HousingError, match="That is so already"):
        rule_change(user=bob, placement=placement, action=action, **students)
    placement.refresh_from_db()
    assert acts_of(placement).count() == bool(done)
    assert placement.changes == (done not in ("", "lock"))


def test_never_pairs_hold_in_the_next_proposal(
    bob: User, placement: Placement, make_pairs: Callable, first_years: Cohort
) -> None:
    pair = placement.pairs.first()
    versions = {pair.pk: pair.version}
    pairs_decide(user=bob, placement=placement, decision=Decision.NEVER, versions=versions)
    again = make_pairs()
    assert not again.pairs.filter(first=pair.first, second=pair.second).exists()


@pytest.mark.parametrize("action", ["lock", "never", "single", "relax", "release", "keep_lock"])
def test_a_rule_change_is_undone_exactly(bob: User, placement: Placement, action: str) -> None:
    first, second = two_of(placement)
    a, b = first.first_number, first.second_number
    pairs_decide(
        user=bob, placement=placement, decision=Decision.ACCEPT, versions={first.pk: first.version}
    )
    if action == "lock":
        b = second.second_number
    if action == "keep_lock":  # releases the accepted pair and the other lock
        b = second.first_number
        rule_change(
            user=bob, placement=placement, action="lock", first=a, second=second.second_number
        )

    def state() -> tuple[object, ...]:
        fresh = Placement.objects.get(pk=placement.pk)
        pairs = fresh.pairs.order_by("pk").values_list("pk", "state", "decided_by", "decided_at")
        return record_rules(fresh), fresh.changes, list(pairs)

    before = state()
    event = rule_change(
        user=bob, placement=placement, action=action, first=a, second=b, column="Gender"
    )
    assert state() != before
    assert "Undone" in decision_undo(user=bob, placement=placement, event=event)
    assert state() == before
    with pytest.raises(PlacesChangedError, match="undone already"):
        decision_undo(user=bob, placement=placement, event=event)


def test_undo_of_a_rule_leaves_a_later_decision_alone(
    bob: User, carol: User, placement: Placement
) -> None:
    pair = two_of(placement)[0]
    event = rule_change(
        user=bob,
        placement=placement,
        action="never",
        first=pair.first_number,
        second=pair.second_number,
    )
    pair.refresh_from_db()
    versions = {pair.pk: pair.version}
    pairs_decide(user=carol, placement=placement, decision=Decision.ACCEPT, versions=versions)
    with pytest.raises(PlacesChangedError, match="changed since"):
        decision_undo(user=bob, placement=placement, event=event)
    pair.refresh_from_db()
    assert pair.state == PairState.ACCEPTED


def test_the_toast_of_a_rule_offers_undo(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    number = two_of(placement)[0].first_number
    client = client_of(bob)
    address = reverse("housing:pairs-rule", args=[placement.pk])
    page = client.post(address, {"action": "single", "first": f"S-{number}"}, follow=True)
    event = acts_of(placement).get()
    undo = reverse("housing:placement-undo", args=[placement.pk, event.pk])
    assert Page(page).one("status").one("form").address == undo
    client.post(undo)
    placement.refresh_from_db()
    assert placement.singles == []


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
    placement = pairs_create(
        user=bob, name="Odd", cohort=Cohort.objects.get(pk=first_years.pk), model=learned
    )
    settings.ORGANISATION_QUOTA_GB = 0
    address = reverse("housing:pairs-rule", args=[placement.pk])
    change = {"action": "single", "first": "S-1007"}
    page = Page(client_of(bob).post(address, change, follow=True))
    placement.refresh_from_db()
    assert (placement.singles, placement.job) == ([1007], None)
    assert page.one("status").says(acts_of(placement).get().sentence)
    assert page.one("alert").says("This was not stored or started.")
    assert page.has("button", "Pair the students", exactly=True)


def test_a_lock_of_a_proposed_pair_holds_at_once(bob: User, placement: Placement) -> None:
    """It used to read "to decide" until the pairs were proposed anew, on screen and in exports."""
    pair = two_of(placement)[0]
    numbers = {"first": pair.first_number, "second": pair.second_number}
    event = rule_change(user=bob, placement=placement, action="lock", **numbers)
    pair.refresh_from_db()
    assert (pair.state, pair.decided_by) == (PairState.LOCKED, "bob")
    placement.refresh_from_db()
    assert placement.changes == 0  # the pairs are as good as they were
    assert not placement.locks.exists()
    decision_undo(user=bob, placement=placement, event=event)
    assert placement.pairs.get(pk=pair.pk).state == PairState.OPEN
