"""The pictures of a placement, in the same words as its table; when it was at its best."""

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest
from django.urls import reverse
from django.utils import timezone
from numpy.typing import NDArray

from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.services.latecomers import latecomers_add
from webapp.housing.models import Placement
from webapp.housing.pairs.decisions import Decision, pairs_decide
from webapp.housing.pairs.numbers import PairNumbers
from webapp.matching.like_students import first_of_groups, multiples_of_even_draw


@pytest.mark.parametrize("same", [(), ("Gender",)])
def test_the_heatmap_reads_as_the_table(
    make_pairs: Callable[..., Placement], same: tuple[str, ...]
) -> None:
    """Under "same gender" a pair that the table gave 5 times an even draw stood at 10 times."""
    numbers = PairNumbers(make_pairs(same))
    placement, n_allowed = numbers.placement, numbers.arrays["n_allowed"]

    def multiples(n_groups: int) -> NDArray[np.float64]:
        starts = first_of_groups(len(numbers.order), n_groups)
        return multiples_of_even_draw(numbers.marginals, n_allowed, numbers.order, starts)

    one_by_one, all_together = multiples(1000), multiples(1)
    for pair in placement.pairs.all():
        assert np.isclose(one_by_one, pair.multiple, rtol=1e-5).any()
    allowed = one_by_one[np.isfinite(one_by_one)]
    assert (allowed > 0).all()
    assert allowed.size == (2 * 16 * 15 if same else 32 * 31)
    assert all_together == pytest.approx(1.0, abs=1e-5)


def test_the_heatmap_is_counted_when_pairs_are_proposed(
    placement: Placement, bob: User, client_of: Callable
) -> None:
    """A page of 10,000 students took 1.5 s; one of before, and with latecomers, is counted anew."""
    numbers = PairNumbers(placement)
    kept = numbers.arrays.pop("between_groups")
    np.testing.assert_array_equal(numbers.between_groups, kept)
    latecomers_add(user=bob, cohort=placement.cohort, rows=[{"id": "new"}])
    page = client_of(bob).get(reverse("housing:pair-numbers", args=[placement.pk]))
    assert page.status_code == 200


def test_the_badge_says_of_which_day_the_certificate_is(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    """One of last week used to read as today's."""
    pair = placement.pairs.first()
    versions = {pair.pk: pair.version}
    pairs_decide(user=bob, placement=placement, decision=Decision.REJECT, versions=versions)
    address = reverse("housing:placement", args=[placement.pk])
    assert Page(client_of(bob).get(address)).says("Best as of today")
    before = timezone.now() - timedelta(days=7)
    Placement.objects.filter(pk=placement.pk).update(best_at=before)
    page = Page(client_of(bob).get(address))
    assert page.says(f"Best as of {timezone.localtime(before).day} ")
