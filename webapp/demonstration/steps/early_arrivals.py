"""Step of the published placement: a small cohort from the questionnaire, in a house of its own."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.demonstration.steps.past_years import PLACE_SECONDS, SEED, forget_placement
from webapp.demonstration.steps.questionnaire import ANSWERED
from webapp.demonstration.steps.step import Started, Step, StepError, administrator_of, named
from webapp.housing.models import BuildingList, Placement, Room
from webapp.housing.rules import PlacementRules
from webapp.housing.services.buildings import building_list_create
from webapp.housing.services.placements import placement_create
from webapp.housing.services.publication import placement_publish
from webapp.letters.models import LetterTemplate
from webapp.letters.services.templates import FIRST_SUBJECT, FIRST_TEXT, template_save
from webapp.matching.models import LearnedModel
from webapp.matching.services.set_models import model_set
from webapp.surveys.models import Questionnaire
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.translation.lazy import gettext_lazy as _

COHORT_NAME = "Early arrivals 2026 (generated)"
MODEL_NAME = "Early arrivals, weights set by hand"
HOUSE = "Demonstration guest house"
LETTER = "Your room (demonstration)"
IMPORTANCE = {"Bedtime": 2.0, "Tidiness": 2.0, "Smoking": 2.0, "Study noise": 1.0, "Guests": 0.5}
_ROOMS_A_FLOOR = 10


def start(user: User, needs: Mapping[str, Any]) -> Started:
    """Make a cohort of the answers, set weights by hand, and place the cohort in the house."""
    questionnaire: Questionnaire = needs["questionnaire"]
    cohort = named(Cohort, user, COHORT_NAME) or cohort_from_answers(
        user=user, questionnaire=questionnaire, name=COHORT_NAME
    )
    model = named(LearnedModel, user, MODEL_NAME) or model_set(
        user=user, name=MODEL_NAME, cohort=cohort, importance=IMPORTANCE
    )
    placement = placement_create(
        user=user,
        name=COHORT_NAME,
        cohort=cohort,
        buildings=named(BuildingList, user, HOUSE) or _house(user),
        model=model,
        rules=PlacementRules(same=("Gender",)),
        seed=SEED,
        seconds=PLACE_SECONDS,
    )
    return Started(placement, placement.job)


def _house(user: User) -> BuildingList:
    """Create a house with a few more beds than students."""
    house = building_list_create(user=user, name=HOUSE)
    count = ANSWERED // 2 + 1
    Room.objects.bulk_create(
        Room(
            buildings=house,
            hall="Guest house",
            floor=str(1 + k // _ROOMS_A_FLOOR),
            name=f"{1 + k // _ROOMS_A_FLOOR}{1 + k % _ROOMS_A_FLOOR:02d}",
            capacity=2,
            position=k,
        )
        for k in range(count)
    )
    return house


def publish(user: User, placement: Placement) -> bool:
    """Publish the placement as it was computed, and write a letter for it, which is not sent."""
    if not placement.is_computed:
        raise StepError(gettext("%(placement)s has no rooms.") % {"placement": placement.name})
    if not placement.is_published:
        administrator = administrator_of(user)
        placement_publish(user=administrator, placement=placement, version=placement.version)
    if named(LetterTemplate, user, LETTER) is None:
        text = FIRST_TEXT.replace("\n[contacts]\n", "")
        template_save(user=user, template=None, name=LETTER, subject=FIRST_SUBJECT, text=text)
    return True


PUBLISHED = Step(
    key="published",
    title=_("A published placement"),
    doing=_("Placing and publishing the early arrivals"),
    model=Placement,
    url_name="housing:placement",
    start=start,
    discard=forget_placement,
    needs=("questionnaire",),
    finish=publish,
)
