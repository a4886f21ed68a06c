"""Names of students on the pages of pairs: who sees them, where, and that nothing stores them."""

import csv
import io
import json
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.programs import Program
from tests.webapp.matching.conftest import acts_of, two_of
from tests.webapp.roles import Page, Part
from webapp.accounts.models import NamesFor, User
from webapp.api.services import token_create
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import forget_directories
from webapp.housing.models import PlacedPair, Placement, PlacementEvent

GIVEN, FAMILY = "Zoë<b>", "O’Hára"  # a name is never markup


@pytest.fixture
def named(placement: Placement) -> Placement:
    """The placement, whose students have names: Zoë<b>7 O’Hára for S-1007."""
    for student in placement.cohort.students.all():
        student.name = f"{GIVEN}{student.number} {FAMILY}"
        student.email = f"zoe{student.number}@north.example"
        student.save(update_fields=["name", "email"])
    Cohort.objects.filter(pk=placement.cohort_id).update(revision=placement.cohort.revision + 1)
    return Placement.objects.get(pk=placement.pk)


def shown_name(number: int) -> str:
    return f"{GIVEN}{number} {FAMILY}"


def text_of(client: Client, address: str, **headers: str) -> Page:
    answer = client.get(address, headers=headers or None)
    return Page(answer, status=answer.status_code)


def decide(client: Client, pair: PlacedPair, decision: str, **more: object) -> Page:
    """Decide by a fragment and return the answer with its toast."""
    pair.refresh_from_db()
    response = client.post(
        reverse("housing:pairs-decide", args=[pair.placement_id]),
        {"decision": decision, "pair": f"{pair.pk}:{pair.version}", **more},
        headers={"HX-Request": "true"},
    )
    return Page(response)


def toasts_of(page: Page) -> list[str]:
    return [Part(one).text for one in page.element.find_class("toast")]


def pages_of(placement: Placement) -> list[str]:
    """Return the pages of the pairs, with the card of a pair and the forms of a swap."""
    first, second = two_of(placement)
    address = reverse("housing:placement", args=[placement.pk])
    swap = reverse("housing:pairs-swap", args=[placement.pk])
    return [
        f"{address}?tab=all",
        f"{address}?tab=all&pair={first.pk}",
        f"{swap}?student=S-{first.first_number}",
        f"{swap}?student=S-{first.first_number}&partner=S-{second.first_number}",
    ]


def test_staff_see_names_on_every_page_and_each_list_is_audited_once(
    bob: User, client_of: Callable, named: Placement
) -> None:
    client = client_of(bob)
    first, _ = two_of(named)
    for address in pages_of(named):
        AuditLine.objects.all().delete()
        shown = text_of(client, address)
        assert shown.says(shown_name(first.first_number)), address
        assert GIVEN not in shown.source, address
        assert AuditLine.objects.filter(user=bob, verb="looked at names").count() == 1, address
    table = text_of(client, pages_of(named)[0])
    labels = f"{shown_name(first.first_number)} (S-{first.first_number}) + "
    for act in ("Mark", "Accept", "Lock", "Never pair", "Swap"):
        assert any(
            part.name.startswith(f"{act} {labels}")
            for role in ("button", "checkbox", "link")
            for part in table.every(role)
        ), act


def test_viewers_and_hidden_sessions_see_ids_alone(
    alice: User, bob: User, client_of: Callable, named: Placement
) -> None:
    viewer, staff = client_of(alice), client_of(bob)
    staff.post(reverse("students:hide-names"), {"hide": "1"})
    first, _ = two_of(named)
    for address in pages_of(named):
        assert FAMILY not in text_of(viewer, address).source, address
        shown = text_of(staff, address)
        assert FAMILY not in shown.source, address
        assert shown.says(f"S-{first.first_number}"), address
    assert FAMILY not in decide(staff, first, "accept").source
    assert not AuditLine.objects.filter(verb="looked at names").exists()


def test_reports_undo_and_refusals_name_people_and_nothing_is_stored(
    bob: User, client_of: Callable, named: Placement
) -> None:
    client = client_of(bob)
    first, second = two_of(named)
    both = f"{shown_name(first.first_number)} (S-{first.first_number}) + "
    assert any(text.startswith(both) for text in toasts_of(decide(client, first, "lock")))
    refused = toasts_of(decide(client, first, "never"))  # "... is locked. Release the lock"
    assert any(text.startswith(both) for text in refused)
    undo = reverse("housing:placement-undo", args=[named.pk, acts_of(named).get().pk])
    shown = Page(client.post(undo, headers={"HX-Request": "true"}))
    assert shown.says(f"Undone: {both}")
    swap = reverse("housing:pairs-swap", args=[named.pk])
    number = first.first_number
    refused = text_of(client, f"{swap}?student=S-{number}&partner=S-{first.second_number}")
    assert refused.has("alert", f"{shown_name(number)} (S-{number}) and ")
    rule = reverse("housing:pairs-rule", args=[named.pk])
    client.post(rule, {"action": "never", "first": number, "second": second.first_number})
    page = text_of(client, reverse("housing:placement", args=[named.pk]) + "?tab=never")
    assert page.text.count(shown_name(number)) >= 2  # the table and the toast that waited
    client.post(rule, {"action": "single", "first": number})
    stored = json.dumps(
        [list(PlacementEvent.objects.values()), list(AuditLine.objects.values("details"))],
        default=str,
        ensure_ascii=False,
    )
    assert FAMILY not in stored
    assert f"S-{number}" in stored


def test_a_waiting_toast_holds_ids_and_follows_the_switch(
    bob: User, client_of: Callable, named: Placement
) -> None:
    """Names are added when a toast is shown: hidden meanwhile, they stay hidden."""
    client = client_of(bob)
    pair, _ = two_of(named)
    client.post(
        reverse("housing:pairs-decide", args=[named.pk]),
        {"decision": "accept", "pair": f"{pair.pk}:{pair.version}"},
    )
    kept = [cookie.value for cookie in client.cookies.values()]
    assert not [text for text in kept if "Hára" in text]
    client.post(reverse("students:hide-names"), {"hide": "1"})
    shown = text_of(client, reverse("common:home"))
    assert shown.one("status").says(f"{pair.label} accepted.")
    assert FAMILY not in shown.source


def test_an_id_of_two_cohorts_is_named_only_beside_its_own_cohort(
    bob: User, client_of: Callable, named: Placement, returning: Cohort
) -> None:
    """Organisations of before have ids twice: a name of another person would be worse than none."""
    client = client_of(bob)
    pair, _ = two_of(named)
    assert returning.students.filter(number=pair.first_number).exists()
    assert decide(client, pair, "accept").says(shown_name(pair.first_number))
    client.post(
        reverse("housing:pairs-decide", args=[named.pk]),
        {"decision": "reopen", "pair": f"{pair.pk}:2"},
    )
    assert FAMILY not in text_of(client, reverse("common:home")).source


def test_a_file_has_names_only_if_staff_choose_them(
    bob: User, client_of: Callable, named: Placement
) -> None:
    address = reverse("housing:pairs-export", args=[named.pk, "csv"])
    client = client_of(bob)
    assert FAMILY not in client.get(address).content.decode("utf-8-sig")
    rows = list(
        csv.DictReader(io.StringIO(client.get(f"{address}?names=1").content.decode("utf-8-sig")))
    )
    number = int(rows[0]["on_screen_a"][2:])
    assert rows[0]["name_a"] == f"{GIVEN}{number} {FAMILY}"
    assert rows[0]["email_b"] == f"zoe{rows[0]['on_screen_b'][2:]}@north.example"
    lines = AuditLine.objects.filter(verb="exported").order_by("pk")
    assert [line.details["with_names"] for line in lines] == [False, True]


def test_a_file_with_names_is_refused_in_words_without_the_right(
    alice: User, bob: User, mallory: User, client_of: Callable, named: Placement
) -> None:
    address = reverse("housing:pairs-export", args=[named.pk, "csv"]) + "?names=1"
    assert client_of(alice).get(address).status_code == 403
    assert client_of(mallory).get(address).status_code == 404
    client = client_of(bob)
    client.post(reverse("students:hide-names"), {"hide": "1"})
    page = Page(client.get(address, follow=True))
    assert page.one("alert").says("You hide names now")
    assert not page.has("link", "Pairs that stand with names")
    bob.organisation.names_for = NamesFor.ADMINISTRATORS
    bob.organisation.save()
    client.post(reverse("students:hide-names"), {"hide": "0"})
    page = Page(client.get(address, follow=True))
    assert page.one("alert").says("does not show names to your role")
    _, secret = token_create(user=bob, name="sync", may_change=True, days=30)
    answer = Program(secret).get(f"/proposals/{named.pk}/export/csv?names=true")
    assert answer.status_code in (409, 422)
    assert not AuditLine.objects.filter(verb="exported").exists()


@pytest.mark.parametrize(
    "typed", ["zoe<b>{n}", "O’HARA Zoë<b>{n}", "zoe{n}@north.example", "S-{n}", "{n}", "=n{k:03d}"]
)
def test_a_search_on_a_proposal_finds_a_person(
    alice: User, bob: User, client_of: Callable, named: Placement, typed: str
) -> None:
    pair, _ = two_of(named)
    number = pair.second_number
    text = typed.format(n=number, k=number - 1001)
    address = reverse("housing:placement", args=[named.pk])
    for tab in ("all", "open"):
        page = client_of(bob).get(address, {"tab": tab, "q": text})
        assert pair.pk in [row.pk for row in page.context["rows"]], tab
        assert len(page.context["rows"]) == 1
    is_id = typed in ("S-{n}", "{n}")
    shown = client_of(alice).get(address, {"tab": "all", "q": text})
    assert [row.pk for row in shown.context["rows"]] == ([pair.pk] if is_id else [])
    client_of(bob).post(
        reverse("housing:pairs-rule", args=[named.pk]),
        {"action": "never", "first": pair.first_number, "second": number},
    )
    apart = client_of(bob).get(address, {"tab": "never", "q": text})
    assert len(apart.context["rows"]) == 1


def test_a_search_on_a_proposal_finds_nobody_without_the_right(
    bob: User, client_of: Callable, named: Placement
) -> None:
    client, address = client_of(bob), reverse("housing:placement", args=[named.pk])
    assert client.get(address, {"tab": "all", "q": "o’hara"}).context["table"].page.paginator.count
    client.post(reverse("students:hide-names"), {"hide": "1"})
    AuditLine.objects.all().delete()
    hidden = client.get(address, {"tab": "all", "q": "zoe<b>1001"})
    assert len(hidden.context["rows"]) == 1
    assert FAMILY not in Page(hidden).source
    assert AuditLine.objects.get(verb="searched for students").details["found"] == ["S-1001"]
    bob.organisation.names_for = NamesFor.NOBODY
    bob.organisation.save()
    assert not client.get(address, {"tab": "all", "q": "zoe<b>1001"}).context["rows"]


def test_rules_and_swaps_take_names_numbers_and_emails(
    bob: User, client_of: Callable, named: Placement
) -> None:
    client = client_of(bob)
    first, second = two_of(named)
    student, partner = first.first_number, second.first_number
    address = reverse("housing:pairs-swap", args=[named.pk])
    page = client.get(
        address, {"student": f"zoe{student}@north.example", "partner": f"O’Hára {GIVEN}{partner}"}
    )
    assert {student, partner} <= {n for pair in page.context["offer"].new for n in pair_of(pair)}
    values = Page(page).element.xpath("//input[@name='student']/@value")
    assert f"S-{student}" in values
    rule = reverse("housing:pairs-rule", args=[named.pk])
    client.post(rule, {"action": "single", "first": f"{GIVEN}{student} O’Hára"})
    named.refresh_from_db()
    assert named.singles == [student]
    sent = {"action": "single", "first": f"S-{partner}, S-{student}"}
    refused = Page(client.post(rule, sent, follow=True))
    assert refused.has("alert", "Name one student in each field.")
    named.refresh_from_db()
    assert named.singles == [student]


def pair_of(pair: object) -> tuple[int, int]:
    return pair.first, pair.second


def test_namesakes_in_rules_and_swaps_are_a_choice(
    bob: User, client_of: Callable, named: Placement
) -> None:
    client = client_of(bob)
    first, second = two_of(named)
    twins = (first.first_number, second.first_number)
    named.cohort.students.filter(number__in=twins).update(name="Anna Ash")
    forget_directories()
    rule = reverse("housing:pairs-rule", args=[named.pk])
    other = f"S-{first.second_number}"
    sent = {"action": "never", "first": other, "second": "anna ash", "back": "tab=open"}
    page = Page(client.post(rule, sent))
    assert page.has("heading", "Who is meant?")
    for number in twins:
        button = page.one("button", f"S-{number}").element
        assert (button.get("name"), button.get("value")) == ("second", f"S-{number}")
    assert page.element.xpath("//input[@name='first']/@value") == [other]
    assert not acts_of(named).exists(), "nothing is guessed"
    client.post(rule, {**sent, "second": f"S-{twins[1]}"})
    assert acts_of(named).count() == 1
    swap = reverse("housing:pairs-swap", args=[named.pk])
    page = Page(client.get(swap, {"student": other, "partner": "Anna Ash"}))
    assert page.has("status", "Who is meant?")
    hidden = "//input[@type='hidden'][@name='student']/@value"
    assert page.element.xpath(hidden) == [other, other]
    assert f"S-{twins[0]}" in page.element.xpath("//*[@name='partner']/@value")
    bob.organisation.names_for = NamesFor.NOBODY
    bob.organisation.save()
    page = Page(client.post(rule, sent, follow=True))
    assert page.one("alert").says("is nobody in")
    assert page.one("alert").says("Use an id on screen")
