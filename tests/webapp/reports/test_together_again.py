"""Couples who would live together again become pairs to learn from; nobody else does."""

from collections.abc import Callable
from datetime import date

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.follow_ups import ROOMS, answer, opened, place_doubles
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement
from webapp.reports.together_again import FEWEST_PAIRS, couples_learn_from, couples_of
from webapp.surveys.models import Questionnaire

YES, NO = 1, 0


@pytest.fixture
def placement(bob: User) -> Placement:
    """Doubles with rising scores, published."""
    return place_doubles(bob)


def answered(user: User, first: int = 0) -> Questionnaire:
    """A follow-up in which all couples from ``first`` on said yes."""
    asked = opened(user)
    for k in range(first, ROOMS):
        answer(asked, f"N{k}-1", 4, YES, 0)
        answer(asked, f"N{k}-2", 4, YES, 0)
    return asked


def test_only_couples_with_two_yes_are_pairs(bob: User, placement: Placement) -> None:
    asked = answered(bob, first=3)
    answer(asked, "N0-1", 4, YES, 0)
    answer(asked, "N0-2", 0, NO, 0)  # one no
    answer(asked, "N1-1", 4, YES, 0)  # one answer
    found = couples_of(placement, asked)
    assert (len(found.pairs), found.refused) == (ROOMS - 3, 1)
    assert found.unknown == 2, "one answer, and none"
    assert (2001, 2002) not in found.pairs
    assert found.pairs[0] == (2007, 2008)


def test_a_no_with_a_missing_answer_is_a_no(bob: User, placement: Placement) -> None:
    asked = opened(bob)
    answer(asked, "N0-1", 4, NO, 0)
    found = couples_of(placement, asked)
    assert (found.pairs, found.refused) == ((), 1)


def test_people_who_follow_each_other_and_larger_rooms_are_no_couples(
    bob: User,
    placement: Placement,
) -> None:
    asked = answered(bob)
    placement.places.filter(number=2001).update(leaves_on=date(2026, 10, 31))
    placement.places.filter(number=2002).update(arrives_on=date(2026, 11, 1))
    room = placement.places.get(number=2003).room
    placement.places.filter(number=2005).update(room=room, bed=3)
    found = couples_of(placement, asked)
    assert len(found.pairs) == ROOMS - 3


def test_the_cohort_has_the_couples_and_their_answers_alone(
    bob: User,
    placement: Placement,
) -> None:
    asked = answered(bob, first=2)
    made = couples_learn_from(user=bob, placement=placement, questionnaire=asked, pairs=ROOMS - 2)
    assert (made.n_students, made.n_pairs) == (2 * (ROOMS - 2), ROOMS - 2)
    assert made.half_of == placement.cohort
    pairs = {(p.first.number, p.second.number) for p in made.past_pairs.all()}
    assert pairs == set(couples_of(placement, asked).pairs)
    assert "Follow-up" in made.pairs_note
    placement.cohort.refresh_from_db()
    assert placement.cohort.n_pairs == 0
    line = AuditLine.objects.get(verb="made pairs of a follow-up")
    assert line.details["pairs"] == ROOMS - 2
    again = couples_learn_from(user=bob, placement=placement, questionnaire=asked, pairs=ROOMS - 2)
    assert again.name == f"{made.name} (2)"


@pytest.mark.parametrize("first", [ROOMS - FEWEST_PAIRS + 1, 0])
def test_too_few_couples_or_other_numbers_make_nothing(
    bob: User,
    placement: Placement,
    first: int,
) -> None:
    asked = answered(bob, first=first)
    with pytest.raises(HousingError, match="Nothing was made"):
        couples_learn_from(
            user=bob, placement=placement, questionnaire=asked, pairs=ROOMS - first - 1
        )
    assert Cohort.objects.count() == 1


def test_the_page_says_the_numbers_and_makes_the_pairs(
    client_of: Callable[[User], Client],
    bob: User,
    placement: Placement,
) -> None:
    client, asked = client_of(bob), answered(bob)
    address = reverse("reports:afterwards-learn", args=[placement.pk])
    page = Page(client.get(reverse("reports:afterwards", args=[placement.pk])))
    assert page.has("button", f"Make {ROOMS} pairs to learn from", exactly=True)
    made = client.post(address, {"asked": str(asked.pk), "pairs": ROOMS})
    cohort = Cohort.objects.get(half_of=placement.cohort)
    assert made.headers["Location"] == reverse("cohorts:cohort", args=[cohort.pk])
    assert Page(client.get(reverse("matching:model-new"))).says(cohort.name)
    refused = client.post(address, {"asked": str(asked.pk), "pairs": "x"}, follow=True)
    assert refused.status_code == 200
    assert Cohort.objects.count() == 2


def test_few_couples_have_no_button(
    client_of: Callable[[User], Client],
    bob: User,
    placement: Placement,
) -> None:
    answered(bob, first=ROOMS - 1)
    page = Page(client_of(bob).get(reverse("reports:afterwards", args=[placement.pk])))
    assert page.has("paragraph", f"At least {FEWEST_PAIRS} couples are needed")
    assert not page.has("button", "to learn from")


@pytest.mark.parametrize("who", ["alice", "mallory"])
def test_others_make_no_pairs(
    client_of: Callable[[User], Client],
    bob: User,
    placement: Placement,
    request: pytest.FixtureRequest,
    who: str,
) -> None:
    asked = answered(bob)
    address = reverse("reports:afterwards-learn", args=[placement.pk])
    sent = {"asked": str(asked.pk), "pairs": ROOMS}
    answer_to = client_of(request.getfixturevalue(who)).post(address, sent)
    assert answer_to.status_code in (403, 404)
    assert Cohort.objects.count() == 1


def test_a_questionnaire_of_others_is_unknown(
    client_of: Callable[[User], Client],
    bob: User,
    mallory: User,
    placement: Placement,
) -> None:
    theirs = answered(mallory)
    address = reverse("reports:afterwards-learn", args=[placement.pk])
    client_of(bob).post(address, {"asked": str(theirs.pk), "pairs": ROOMS})
    assert Cohort.objects.count() == 1
