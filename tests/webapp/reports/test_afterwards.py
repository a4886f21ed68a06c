"""The follow-up after a term: its questions, the table, and who reads it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.follow_ups import ROOMS, answer, opened, place_doubles
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.housing.models import Placement
from webapp.reports.outcomes import follow_up_of, follow_ups


@pytest.fixture
def placement(bob: User) -> Placement:
    """Doubles with rising scores, published."""
    return place_doubles(bob)


def test_rooms_of_high_scores_are_compared_with_those_of_low_ones(
    bob: User, placement: Placement
) -> None:
    asked = opened(bob)
    for k in range(ROOMS):
        is_good = k >= ROOMS // 2
        answer(asked, f"n{k}-1", 4 if is_good else 0, int(is_good), 0 if is_good else 1)
        answer(asked, f"N{k}-2", 4 if k >= ROOMS - 6 else 0, int(is_good), 0)
    answer(asked, "stranger", 4, 1, 0)
    found = follow_up_of(placement, asked)
    assert (found.n_answers, found.n_known, found.n_rooms) == (49, 48, 24)
    assert [band.rooms for band in found.bands] == [6, 6, 6, 6]
    along = [band.shares[0].share for band in found.bands]
    assert along == [0.0, 0.0, 0.5, 1.0], "the two answers of a room are averaged"
    assert [band.shares[1].share for band in found.bands] == [0.0, 0.0, 1.0, 1.0]
    assert [band.shares[2].share for band in found.bands] == [0.5, 0.5, 1.0, 1.0]
    best = found.bands[3].shares[0]
    assert best.rooms == 6
    assert best.low == pytest.approx(0.6097, abs=1e-3), "of 6 rooms, not of 12 people"
    assert best.high == pytest.approx(1.0)


def test_answers_count_once_and_only_if_finished(bob: User, placement: Placement) -> None:
    asked = opened(bob)
    for k in range(ROOMS):
        answer(asked, f"N{k}-1", 4, 1, 0)
    answer(asked, "n0-1@uni.example", 0, 0, 1, finished_at=None)
    later = timezone.now() + timedelta(minutes=5)
    answer(asked, "", 0, 0, 1, email="n0-1@uni.example", finished_at=later)
    found = follow_up_of(placement, asked)
    assert found.n_known == ROOMS
    assert found.bands[0].shares[0].share == pytest.approx(5 / 6), "the latest answer counts"


def test_few_rooms_are_not_shown(client_of: Callable, bob: User, placement: Placement) -> None:
    asked = opened(bob)
    for k in range(8):
        answer(asked, f"N{k}-1", 4, 1, 0)
    found = follow_up_of(placement, asked)
    assert all(share is None for band in found.bands for share in band.shares)
    page = Page(client_of(bob).get(reverse("reports:afterwards", args=[placement.pk])))
    assert len(page.every("cell", "too few", exactly=True)) == 12


def test_the_page_is_for_staff_of_the_organisation(
    client_of: Callable[[User], Client], alice: User, bob: User, mallory: User, placement: Placement
) -> None:
    address = reverse("reports:afterwards", args=[placement.pk])
    assert Page(client_of(bob).get(address)).has("paragraph", "No follow-up yet.")
    theirs = opened(mallory, "Secret follow-up")
    opened(bob, "Housing", "housing")
    assert follow_ups(bob) == []
    page = Page(client_of(bob).get(address, {"asked": str(theirs.pk)}))
    assert "Secret" not in page.source
    mine = opened(bob)
    page = Page(client_of(bob).get(address, {"asked": "nonsense"}))
    assert page.has("heading", mine.title, exactly=True)
    assert client_of(alice).get(address).status_code == 403
    assert client_of(mallory).get(address).status_code == 404
