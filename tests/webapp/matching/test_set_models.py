"""Weights that staff set: a model like any other, plainly told apart from a learned one."""

from collections.abc import Callable

import pytest
from django.test import Client

from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.pairs.placing import pairs_create
from webapp.matching.errors import MatchingError
from webapp.matching.models import LearnedModel
from webapp.matching.selectors.models import learned_since
from webapp.matching.services.learning import model_delete
from webapp.matching.services.set_models import model_set

ClientOf = Callable[[User], Client]


def test_set_weights_propose_pairs_and_say_that_they_were_set(
    bob: User, first_years: Cohort, client_of: ClientOf
) -> None:
    client = client_of(bob)
    sent = {"cohort": str(first_years.pk), "importance-0": "2.0", "importance-1": "-1.0"}
    answer = client.post("/models/set/", sent)
    model = LearnedModel.objects.get()
    assert answer.url == f"/models/{model.pk}/"
    assert Page(client.get(answer.url)).says("Set by hand, not learned")
    assert Page(client.get("/models/")).one("row", "First-years, set by hand").says("Set by hand")
    placement = pairs_create(user=bob, name="P", cohort=first_years, model=model, same=("Gender",))
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    page = Page(client.get(f"/placements/{placement.pk}/"))
    assert page.says("Weights set by hand")


def test_alike_answers_score_more_by_what_was_set(bob: User, first_years: Cohort) -> None:
    name = first_years.questions[0]["name"]
    model = model_set(user=bob, name="", cohort=first_years, importance={name: 2.0})
    row = next(row for row in model.weights if row["question"] == name)
    steps = len(row["levels"]) - 1 if row["kind"] != "nominal" else 1
    assert row["effect"] * steps == pytest.approx(-2.0)


def test_set_weights_are_replaced_once_a_year_was_learned(
    bob: User,
    first_years: Cohort,
    learned: LearnedModel,
    client_of: ClientOf,
) -> None:
    name = first_years.questions[0]["name"]
    model = model_set(user=bob, name="Ours", cohort=first_years, importance={name: 2.0})
    page = Page(client_of(bob).get(f"/models/{model.pk}/"))
    assert page.says("was learned since from")
    rows = [row for row in page.every("row") if row.has("cell")]
    assert len([row for row in rows if row.cell("Learned (nats)")]) == len(model.weights)
    assert page.one("link", "Place a cohort").address == f"/placements/new/?model={learned.pk}"
    learned.is_simulated = True
    learned.save(update_fields=["is_simulated"])
    assert learned_since(model) is None
    LearnedModel.objects.filter(pk=learned.pk).update(
        is_simulated=False, questions=[{"name": "Something else", "kind": "binary", "levels": []}]
    )
    assert learned_since(model) is None
    assert learned_since(learned) is None


@pytest.mark.parametrize(
    "importance", [{}, {"Smoking": 0.0}, {"Smoking": 1e9}, {"No such question": 1.0}]
)
def test_nothing_and_nonsense_are_refused(
    bob: User, first_years: Cohort, importance: dict[str, float]
) -> None:
    with pytest.raises(MatchingError):
        model_set(user=bob, name="", cohort=first_years, importance=importance)
    assert not LearnedModel.objects.exists()


def test_a_set_model_can_be_removed(carol: User, first_years: Cohort) -> None:
    name = first_years.questions[0]["name"]
    model = model_set(user=carol, name="M", cohort=first_years, importance={name: 1.0})
    path = model.path
    assert path.exists()
    model_delete(user=carol, model=model, typed_name="M")
    assert not LearnedModel.objects.exists()
