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
    form = client.get(step.url).context["form"]
    assert (form.chosen, form["check_on"].value()) == (
        [str(returning.pk)],
        str(later_year.pk),
    )


def test_a_chosen_year_gets_one_to_be_checked_on(
    bob: User, client_of: Callable, returning: Cohort, later_year: Cohort
) -> None:
    form = client_of(bob).get(FORM, {"cohort": str(later_year.pk)}).context["form"]
    assert form.chosen == [str(later_year.pk)]
    assert form["check_on"].value() == str(returning.pk)


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
    assert context["form"].chosen == [str(returning.pk)]
    assert context["form"]["check_on"].value() == str(later_year.pk)
    later_year.delete()
    context = client.get(step.url).context
    assert (context["form"].chosen, context["form"]["check_on"].value()) == (
        [str(returning.pk)],
        "",
    )
    context = client.get(FORM, {"cohort": str(returning.pk)}).context
    assert context["form"]["check_on"].value() == ""


def test_a_half_is_checked_on_the_other_but_not_on_its_whole(
    bob: User, client_of: Callable, returning: Cohort, halves: tuple[Cohort, Cohort]
) -> None:
    """The two halves have no student in common; a simulated whole has all of theirs."""
    Cohort.objects.filter(pk=returning.pk).update(pairs_origin=PairsOrigin.SIMULATED)
    first, second = halves
    for chosen, other in ((first, second), (second, first)):
        context = client_of(bob).get(FORM, {"cohort": str(chosen.pk)}).context
        assert context["form"]["check_on"].value() == str(other.pk)
    context = client_of(bob).get(FORM, {"cohort": str(returning.pk)}).context
    assert context["form"]["check_on"].value() == ""
    both = {"cohort": [str(half.pk) for half in halves]}
    assert client_of(bob).get(FORM, both).context["form"]["check_on"].value() == ""
    assert client_of(bob).get(FORM).context["form"].chosen == [str(returning.pk)]


def test_simulated_pairs_do_not_check_what_real_ones_taught(
    bob: User, client_of: Callable, returning: Cohort, later_year: Cohort
) -> None:
    Cohort.objects.filter(pk=later_year.pk).update(pairs_origin=PairsOrigin.SIMULATED)
    context = client_of(bob).get(FORM, {"cohort": str(returning.pk)}).context
    assert context["form"]["check_on"].value() == ""
    context = client_of(bob).get(FORM, {"cohort": str(later_year.pk)}).context
    assert context["form"]["check_on"].value() == str(returning.pk)
