"""Steps about the generated years: a model, pairs of first-years, and a draft of their rooms."""

from collections.abc import Mapping
from typing import Any

from webapp.accounts.models import User
from webapp.cohorts.demonstration import FIRST_YEARS, PAST_YEARS
from webapp.cohorts.models import Cohort
from webapp.demonstration.steps.step import Started, Step, required
from webapp.housing.demonstration import NAME as CAMPUS
from webapp.housing.models import BuildingList, Placement
from webapp.housing.pairs.placing import pairs_create
from webapp.housing.rules import PlacementRules
from webapp.housing.services.placements import placement_create, placement_delete
from webapp.matching.models import LearnedModel
from webapp.matching.services.learning import model_delete, model_learn
from webapp.translation.lazy import gettext_lazy as _

MODEL_NAME = "Roommates 2024 (generated)"
PAIRS_NAME = "Pairs of first-years 2026 (generated)"
DRAFT_NAME = "Rooms of first-years 2026 (generated)"
PLACE_SECONDS = 10.0  # CPU time, so that the demonstration is ready soon
SEED = 2026


def learn(user: User, needs: Mapping[str, Any]) -> Started:
    """Learn from the first past year and check the model on the second."""
    first, second = (required(Cohort, user, name) for name in PAST_YEARS)
    model = model_learn(user=user, name=MODEL_NAME, cohorts=[first], check_on=second, seed=SEED)
    return Started(model, model.job)


def forget_model(user: User, model: LearnedModel) -> None:
    """Remove a model that was not learned."""
    model_delete(user=user, model=model, typed_name=model.name)


def propose(user: User, needs: Mapping[str, Any]) -> Started:
    """Pair the first-years, as a draft."""
    placement = pairs_create(
        user=user,
        name=PAIRS_NAME,
        cohort=required(Cohort, user, FIRST_YEARS),
        model=needs["model"],
        same=["Gender"],
    )
    return Started(placement, placement.job)


def place(user: User, needs: Mapping[str, Any]) -> Started:
    """Place the first-years in the rooms of the demonstration campus, as a draft."""
    placement = placement_create(
        user=user,
        name=DRAFT_NAME,
        cohort=required(Cohort, user, FIRST_YEARS),
        buildings=required(BuildingList, user, CAMPUS),
        model=needs["model"],
        rules=PlacementRules(same=("Gender",)),
        seed=SEED,
        seconds=PLACE_SECONDS,
    )
    return Started(placement, placement.job)


def forget_placement(user: User, placement: Placement) -> None:
    """Remove a placement without rooms or pairs."""
    placement_delete(user=user, placement=placement, typed_name=placement.name)


MODEL = Step(
    key="model",
    title=_("A learned model"),
    doing=_("Learning which answers make roommates get along"),
    model=LearnedModel,
    url_name="matching:model",
    start=learn,
    discard=forget_model,
)
PAIRS = Step(
    key="pairs",
    title=_("A draft of pairs"),
    doing=_("Choosing pairs for the first-years"),
    model=Placement,
    url_name="housing:placement",
    start=propose,
    discard=forget_placement,
    needs=("model",),
)
DRAFT = Step(
    key="draft",
    title=_("A draft of rooms"),
    doing=_("Placing the first-years in rooms"),
    model=Placement,
    url_name="housing:placement",
    start=place,
    discard=forget_placement,
    needs=("model",),
)
