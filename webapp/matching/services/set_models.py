"""Models whose weights staff set, until a past year with pairs exists."""

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from engine import question_weights
from engine.learning.roommates.set_weights import set_roommate_weights
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_survey
from webapp.files import store
from webapp.files.quota import check_quota, with_fresh_count
from webapp.files.storage import keep_file
from webapp.matching.errors import MatchingError
from webapp.matching.models import LearnedModel
from webapp.matching.results import weight_rows
from webapp.translation.lazy import gettext_lazy

# Importance in words, with its effect between the farthest answers, in nats.
CHOICES = (
    (-1.0, gettext_lazy("Unlike is better")),
    (0.0, gettext_lazy("Does not matter")),
    (0.5, gettext_lazy("Alike matters a little")),
    (1.0, gettext_lazy("Alike matters")),
    (2.0, gettext_lazy("Alike matters a lot")),
)
VALUES = {value for value, _ in CHOICES}


@with_fresh_count
def model_set(
    *, user: User, name: str, cohort: Cohort, importance: Mapping[str, float]
) -> LearnedModel:
    """Create a model with weights set by hand for the questions of a cohort.

    Raises
    ------
    MatchingError, QuotaError
        If every question has weight 0, or a value is not one of the choices; nothing was made.
    """
    asked = {question["name"] for question in cohort.questions}
    for question in importance:
        if question not in asked:
            raise MatchingError(
                _("%(question)s is not a question of %(cohort)s.")
                % {"question": question[:60], "cohort": cohort.name}
            )
    chosen = {question: value for question, value in importance.items() if value}
    if not chosen:
        raise MatchingError(_("Set an importance for at least one question."))
    if not VALUES.issuperset(chosen.values()):
        raise MatchingError(_("Choose one of the offered importances."))
    model = LearnedModel(
        organisation=user.own_organisation,
        created_by=user,
        name=" ".join(name.split())[:120]
        or (_("%(name)s, set by hand") % {"name": cohort.name[:100]})[:120],
        sources=[],
        questions=cohort.questions,
        options={"importance": dict(importance)},
        learned_at=timezone.now(),
    )
    weights = set_roommate_weights(cohort_survey(cohort), chosen)
    model.weights = weight_rows(question_weights(weights))
    written = model.path.with_suffix(".part")
    weights.save(written)
    size = written.stat().st_size
    keep_file(written, model.path)
    try:
        with transaction.atomic():
            model.save()
            audit(user, "set weights", model, cohort=cohort.name, questions=len(chosen))
            check_quota(user.organisation_id, written=size)
    except BaseException:
        store.remove(model.path)
        raise
    return model
