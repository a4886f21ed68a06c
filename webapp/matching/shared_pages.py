"""Contributions of models to the rail, the home page and the search."""

from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Count, QuerySet
from django.urls import reverse

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.common import hooks
from webapp.common.formats import counted
from webapp.common.listing import light
from webapp.common.selectors import owned_by
from webapp.matching.models import LearnedModel
from webapp.matching.selectors.models import learned_models, worth_learning

MAX_HITS = 10


def register() -> None:
    """Register rail lines, next steps, facts and search."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing",
            "Models",
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
        yield hooks.CohortContent(f"{counted(apart, 'pair')} kept apart")


def cohort_progress(keys: Collection[Any]) -> dict[Any, hooks.Progress]:
    """Return by cohort the number of models learned from it."""
    found = {}
    models = LearnedModel.objects.filter(cohorts__in=keys, learned_at__isnull=False)
    for row in models.order_by().values("cohorts").annotate(count=Count("pk")):
        words = f"Used by {counted(row['count'], 'model')}"
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
            f"Place {waiting.name}",
            f"{waiting.n_students:,} students have no roommates yet.",
            f"{reverse('housing:placement-new')}?cohort={waiting.pk}",
            "Place a cohort",
            icon="bed-double",
            order=15,
        )
    checked = models.filter(placements=None).exclude(findings={}).first()  # evaluated before use
    if checked is not None:
        auc, baseline = checked.findings["auc"], checked.findings["baseline_auc"]
        verb = "beats" if auc > baseline else "does not beat"
        yield hooks.NextStep(
            f"Read the check of model “{checked.name}”",
            f"On {checked.checked_pairs}, never learned from, it {verb} plain "
            f"distance: AUC {auc:.2f} against {baseline:.2f}.",
            reverse("matching:model", args=[checked.pk]),
            "Open the check",
            icon="chart-line",
            tone="neutral",
            order=40,
        )


def _first_model_step(user: User, past: QuerySet[Cohort]) -> Iterable[hooks.NextStep]:
    """Link to the form without a chosen year: it suggests some, and one to check on."""
    sizes = [cohort.n_pairs for cohort in worth_learning(list(past))]
    if not sizes and not owned_by(LearnedModel, user).exists():
        yield hooks.NextStep(
            "Say which answers matter",
            "No past year with pairs is here yet. Set an importance per question, and learn "
            "weights once a year with pairs exists.",
            reverse("matching:model-set"),
            "Set weights by hand",
            icon="sliders-horizontal",
            order=13,
        )
    if sizes and not owned_by(LearnedModel, user).exists():
        years = "one cohort" if len(sizes) == 1 else f"{len(sizes)} cohorts"
        yield hooks.NextStep(
            "Learn from past pairs",
            f"{sum(sizes):,} pairs of {years} tell which answers brought students together.",
            reverse("matching:model-new"),
            "Learn a model",
            icon="scale",
            order=12,
        )


def search(user: User, query: str) -> Iterable[hooks.SearchHit]:
    """Return models by name."""
    for model in light(owned_by(LearnedModel, user)).filter(name__icontains=query)[:MAX_HITS]:
        address = reverse("matching:model", args=[model.pk])
        yield hooks.SearchHit(model.name, "Model", address, "scale")
