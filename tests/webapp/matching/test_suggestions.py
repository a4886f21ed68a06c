"""The form for a new model suggests years to learn from, and one that can check what is learned."""

from collections.abc import Callable

import pytest

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, PairsOrigin
from webapp.cohorts.services.cohorts import cohort_set_pairs, cohort_split
from webapp.matching.errors import MatchingError
from webapp.matching.selectors.models import cohorts_to_check
from webapp.matching.services.learning import model_learn

FORM = "/models/new/"


@pytest.fixture
def halves(bob: User, returning: Cohort) -> tuple[Cohort, Cohort]:
    """Two halves of a past year, newer than any other year, with simulated pairs."""
    halves = cohort_split(user=bob, cohort=returning, seed=5)
    for half in halves:
        n_pairs = half.n_students // 2
        cohort_set_pairs(
            user=bob,
            cohort=half,
            pairs=[(2 * k, 2 * k + 1) for k in range(n_pairs)],
            origin=PairsOrigin.SIMULATED,
            note="",
        )
    return halves


def test_a_half_of_what_was_learned_from_checks_nothing(
    bob: User, returning: Cohort, halves: tuple[Cohort, Cohort]
) -> None:
    """Its students are those learned from, so the check would praise the model."""
    first, second = halves
    for source, check in ((returning, first), (first, returning)):
        with pytest.raises(MatchingError, match=f"shares students with {source.name}"):
            model_learn(user=bob, name="", cohorts=[source], check_on=check)
    model = model_learn(user=bob, name="", cohorts=[first], check_on=second)
    assert cohorts_to_check(bob, model) == [second]


def test_home_leads_to_the_years_that_are_suggested(
    bob: User, client_of: Callable, returning: Cohort, later_year: Cohort
) -> None:
    """It used to name one year, which was then learned from without a check on the other."""
    client = client_of(bob)
    step = next(s for s in client.get("/").context["steps"] if s.action == "Learn a model")
    assert step.detail.startswith("32 pairs of 2 cohorts tell")
    context = client.get(step.url).context
    assert (context["chosen"], context["posted"]["check_on"]) == (
        [str(returning.pk)],
        str(later_year.pk),
    )


def test_a_chosen_year_gets_one_to_be_checked_on(
    bob: User, client_of: Callable, returning: Cohort, later_year: Cohort
) -> None:
    context = client_of(bob).get(FORM, {"cohort": str(later_year.pk)}).context
    assert context["chosen"] == [str(later_year.pk)]
    assert context["posted"]["check_on"] == str(returning.pk)


def test_halves_are_suggested_beside_no_real_year(
    bob: User,
    client_of: Callable,
    returning: Cohort,
    later_year: Cohort,
    halves: tuple[Cohort, Cohort],
) -> None:
    """A half asks the same questions and is newer, so it was to check what its whole taught."""
    client = client_of(bob)
    step = next(s for s in client.get("/").context["steps"] if s.action == "Learn a model")
    assert step.detail.startswith("32 pairs of 2 cohorts tell")
    context = client.get(step.url).context
    assert context["chosen"] == [str(returning.pk)]
    assert context["posted"]["check_on"] == str(later_year.pk)
    later_year.delete()
    context = client.get(step.url).context
    assert (context["chosen"], context["posted"]["check_on"]) == ([str(returning.pk)], "")
    context = client.get(FORM, {"cohort": str(returning.pk)}).context
    assert context["posted"]["check_on"] == ""


def test_a_half_is_checked_on_the_other_but_not_on_its_whole(
    bob: User, client_of: Callable, returning: Cohort, halves: tuple[Cohort, Cohort]
) -> None:
    """The two halves have no student in common; a simulated whole has all of theirs."""
    Cohort.objects.filter(pk=returning.pk).update(pairs_origin=PairsOrigin.SIMULATED)
    first, second = halves
    for chosen, other in ((first, second), (second, first)):
        context = client_of(bob).get(FORM, {"cohort": str(chosen.pk)}).context
        assert context["posted"]["check_on"] == str(other.pk)
    context = client_of(bob).get(FORM, {"cohort": str(returning.pk)}).context
    assert context["posted"]["check_on"] == ""
    both = {"cohort": [str(half.pk) for half in halves]}
    assert client_of(bob).get(FORM, both).context["posted"]["check_on"] == ""
    assert client_of(bob).get(FORM).context["chosen"] == [str(returning.pk)]


def test_simulated_pairs_do_not_check_what_real_ones_taught(
    bob: User, client_of: Callable, returning: Cohort, later_year: Cohort
) -> None:
    Cohort.objects.filter(pk=later_year.pk).update(pairs_origin=PairsOrigin.SIMULATED)
    context = client_of(bob).get(FORM, {"cohort": str(returning.pk)}).context
    assert context["posted"]["check_on"] == ""
    context = client_of(bob).get(FORM, {"cohort": str(later_year.pk)}).context
    assert context["posted"]["check_on"] == str(returning.pk)
