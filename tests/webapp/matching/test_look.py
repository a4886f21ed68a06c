"""The pictures of a proposal, in the same words as its table; when it was at its best."""

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import User
from webapp.matching.charts import probability_heatmap
from webapp.matching.models import Decision, Proposal
from webapp.matching.numbers import ProposalNumbers
from webapp.matching.services.decisions import pairs_decide


@pytest.mark.parametrize("same", [(), ("Gender",)])
def test_the_heatmap_reads_as_the_table(
    make_proposal: Callable[..., Proposal], monkeypatch: pytest.MonkeyPatch, same: tuple[str, ...]
) -> None:
    """Under "same gender" a pair that the table gave 5 times an even draw stood at 10 times."""
    proposal = make_proposal(same)
    drawn: list[np.ndarray] = []
    monkeypatch.setattr(
        "webapp.matching.charts.heatmap", lambda values, **_: drawn.append(np.array(values))
    )
    monkeypatch.setattr("webapp.matching.charts.HEATMAP_CELLS", 1000)
    probability_heatmap(ProposalNumbers(proposal))
    monkeypatch.setattr("webapp.matching.charts.HEATMAP_CELLS", 1)
    probability_heatmap(ProposalNumbers(proposal))
    one_by_one, all_together = drawn
    for pair in proposal.pairs.all():
        assert np.isclose(one_by_one, pair.multiple, rtol=1e-5).any()
    allowed = one_by_one[np.isfinite(one_by_one)]
    assert (allowed > 0).all()
    assert allowed.size == (2 * 16 * 15 if same else 32 * 31)
    assert all_together == pytest.approx(1.0, abs=1e-5)


def test_the_badge_says_of_which_day_the_certificate_is(
    bob: User, client_of: Callable, proposal: Proposal
) -> None:
    """One of last week used to read as today's."""
    pair = proposal.pairs.first()
    versions = {pair.pk: pair.version}
    pairs_decide(user=bob, proposal=proposal, decision=Decision.REJECT, versions=versions)
    address = reverse("matching:proposal", args=[proposal.pk])
    assert "Best as of today" in client_of(bob).get(address).content.decode()
    before = timezone.now() - timedelta(days=7)
    Proposal.objects.filter(pk=proposal.pk).update(best_at=before)
    page = client_of(bob).get(address).content.decode()
    assert f"Best as of {timezone.localtime(before).day} " in page
