"""Contributions of models to the rail, the home page and the search."""

from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Count, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.common import hooks
from webapp.common.formats import counted
from webapp.common.listing import light
from webapp.common.selectors import owned_by
from webapp.matching.models import LearnedModel
from webapp.matching.selectors.models import learned_models, worth_learning
from webapp.translation.lazy import gettext_lazy

MAX_HITS = 10


def register() -> None:
    """Register rail lines, next steps, facts and search."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing",
            gettext_lazy("Models"),
            "scale",
            "matching:models",
            order=20,
            counted=LearnedModel,
        )
    )
    hooks.register_cohort_progress(cohort_progress)
    hooks.register_cohort_contents(cohort_contents)
    hooks.register_home_fact(home_fact)
    hooks.register_next_steps(next_steps)
    hooks.register_search(search)


def cohort_contents(cohort: Cohort) -> Iterable[hooks.CohortContent]:
    """Return a cohort's rules about pairs, which are removed with it."""
    apart = cohort.forbidden.count()
    if apart:
        yield hooks.CohortContent(
            ngettext("%(count)s pair kept apart", "%(count)s pairs kept apart", apart)
            % {"count": f"{apart:,}"}
        )


def cohort_progress(keys: Collection[Any]) -> dict[Any, hooks.Progress]:
    """Return by cohort the number of models learned from it."""
    found = {}
    models = LearnedModel.objects.filter(cohorts__in=keys, learned_at__isnull=False)
    for row in models.order_by().values("cohorts").annotate(count=Count("pk")):
        words = ngettext(
            "Used by %(count)s model", "Used by %(count)s models", count := row["count"]
        ) % {"count": f"{count:,}"}
        found[row["cohorts"]] = hooks.Progress(words, 1, 1, reverse("matching:models"), stage=1)
    return found


def home_fact(user: User) -> str:
    """Return a fact for the home page, such as '2 models'."""
    models = owned_by(LearnedModel, user).filter(learned_at__isnull=False).count()
    return counted(models, "model") if models else ""


def next_steps(user: User) -> Iterable[hooks.NextStep]:
    """Return the next steps: cohorts to learn from or to place, models to check."""
    if not user.is_staff_member:
        return
    cohorts = light(owned_by(Cohort, user))
    models = learned_models(user)
    if not models.exists():
        yield from _first_model_step(user, cohorts.filter(n_pairs__gt=1))
        return
    waiting = cohorts.filter(n_pairs=0, placements=None, halves=None).first()
    if waiting is not None:
        yield hooks.NextStep(
            _("Place %(cohort)s") % {"cohort": waiting.name},
            _("%(students)s students have no roommates yet.")
            % {"students": f"{waiting.n_students:,}"},
            f"{reverse('housing:placement-new')}?cohort={waiting.pk}",
            _("Place a cohort"),
            icon="bed-double",
            order=15,
        )
    checked = models.filter(placements=None).exclude(findings={}).first()  # evaluated before use
    if checked is not None:
        auc, baseline = checked.findings["auc"], checked.findings["baseline_auc"]
        if auc > baseline:
            detail = _(
                "On %(cohort)s, never learned from, it beats plain distance: AUC %(auc)s against "
                "%(baseline)s."
            )
        else:
            detail = _(
                "On %(cohort)s, never learned from, it does not beat plain distance: AUC %(auc)s "
                "against %(baseline)s."
            )
        yield hooks.NextStep(
            _("Read the check of model “%(model)s”") % {"model": checked.name},
            detail
            % {
                "cohort": checked.checked_pairs,
                "auc": f"{auc:.2f}",
                "baseline": f"{baseline:.2f}",
            },
            reverse("matching:model", args=[checked.pk]),
            _("Open the check"),
            icon="chart-line",
            tone="neutral",
            order=40,
        )


def _first_model_step(user: User, past: QuerySet[Cohort]) -> Iterable[hooks.NextStep]:
    """Link to the form without a chosen year: it suggests some, and one to check on."""
    sizes = [cohort.n_pairs for cohort in worth_learning(list(past))]
    if not sizes and not owned_by(LearnedModel, user).exists():
        yield hooks.NextStep(
            _("Say which answers matter"),
            _(
                "No past year with pairs is here yet. Set an importance per question, and "
                "learn weights once a year with pairs exists."
            ),
            reverse("matching:model-set"),
            _("Set weights by hand"),
            icon="sliders-horizontal",
            order=13,
        )
    if sizes and not owned_by(LearnedModel, user).exists():
        years = (
            _("one cohort") if len(sizes) == 1 else _("%(count)s cohorts") % {"count": len(sizes)}
        )
        yield hooks.NextStep(
            _("Learn from past pairs"),
            _("%(count)s pairs of %(years)s tell which answers brought students together.")
            % {"count": f"{sum(sizes):,}", "years": years},
            reverse("matching:model-new"),
            _("Learn a model"),
            icon="scale",
            order=12,
        )


def search(user: User, query: str) -> Iterable[hooks.SearchHit]:
    """Return models by name."""
    for model in light(owned_by(LearnedModel, user)).filter(name__icontains=query)[:MAX_HITS]:
        address = reverse("matching:model", args=[model.pk])
        yield hooks.SearchHit(model.name, _("Model"), address, "scale")
