"""The demonstration is made once, by the ways of the product, and says that it is generated."""

from webapp.accounts.models import Organisation, User
from webapp.cohorts.demonstration import load
from webapp.cohorts.models import Cohort


def test_it_makes_two_past_years_and_one_to_be_paired(northfield: Organisation, bob: User) -> None:
    first = load(northfield, bob)
    assert "312 first-years" in first
    cohorts = {cohort.name: cohort for cohort in Cohort.objects.all()}
    assert sorted(cohort.n_pairs for cohort in cohorts.values()) == [0, 156, 156]
    assert all(len(cohort.questions) == 14 for cohort in cohorts.values())
    assert all(cohort.constraints == ["Gender"] for cohort in cohorts.values())
    assert all("generated" in name for name in cohorts)
    assert load(northfield, bob) == "Cohorts of the demonstration are there."
    assert Cohort.objects.count() == 3
