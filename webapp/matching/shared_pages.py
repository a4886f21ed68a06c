"""Contributions of models and proposals to the rail, the home page and the search."""

import re
from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.urls import reverse

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.common import hooks
from webapp.common.formats import counted
from webapp.common.listing import light
from webapp.common.selectors import owned_by
from webapp.matching.models import LearnedModel, Proposal, ProposedPair
from webapp.matching.selectors.models import learned_models, worth_learning
from webapp.matching.selectors.proposals import being_decided

MAX_HITS = 10
# Whole words only: the housing system's A-1376 is probably another student than S-1376.
_IDS = re.compile(r"(?<![^\s,+&])(?:s-?)?(\d{3,8})(?![^\s,+&])", re.IGNORECASE)


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
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing",
            "Proposals",
            "link",
            "matching:proposals",
            order=30,
            counted=Proposal,
        )
    )
    hooks.register_cohort_progress(cohort_progress)
    hooks.register_cohort_contents(cohort_contents)
    hooks.register_home_fact(home_fact)
    hooks.register_next_steps(next_steps)
    hooks.register_search(search)


def cohort_contents(cohort: Cohort) -> Iterable[hooks.CohortContent]:
    """Return a cohort's proposals and rules about pairs, which are removed with it."""
    proposals, apart = cohort.proposals.count(), cohort.forbidden.count()
    if proposals:
        yield hooks.CohortContent(f"{counted(proposals, 'proposal')} of pairs")
    if apart:
        yield hooks.CohortContent(f"{counted(apart, 'pair')} kept apart")


def cohort_progress(keys: Collection[Any]) -> dict[Any, hooks.Progress]:
    """Return by cohort the number of models learned from it, or of its decided pairs."""
    found = {}
    models = LearnedModel.objects.filter(cohorts__in=keys, learned_at__isnull=False)
    for row in models.order_by().values("cohorts").annotate(count=Count("pk")):
        words = f"Used by {counted(row['count'], 'model')}"
        found[row["cohorts"]] = hooks.Progress(words, 1, 1, reverse("matching:models"), stage=1)
    proposals = Proposal.objects.filter(n_pairs__gt=0, cohort__in=keys).order_by("updated_at")
    proposals = proposals.only("cohort", "n_pairs", "n_open")
    latest = {proposal.cohort_id: proposal for proposal in proposals}
    for proposal in latest.values():
        found[proposal.cohort_id] = hooks.Progress(
            f"{proposal.n_decided:,} of {counted(proposal.n_pairs, 'pair')} decided",
            proposal.n_decided,
            proposal.n_pairs,
            reverse("matching:proposal", args=[proposal.pk]),
            stage=2,
        )
    return found


def home_fact(user: User) -> str:
    """Return a fact for the home page: '2 models, 1 proposal being decided'."""
    facts = []
    models = owned_by(LearnedModel, user).filter(learned_at__isnull=False).count()
    if models:
        facts.append(counted(models, "model"))
    deciding = being_decided(user).count()
    if deciding:
        facts.append(f"{counted(deciding, 'proposal')} being decided")
    return ", ".join(facts)


def next_steps(user: User) -> Iterable[hooks.NextStep]:
    """Return the next steps: pairs to decide, cohorts to learn from or to pair, models to check."""
    if not user.is_staff_member:
        return
    yield from _decide_steps(user)
    cohorts = light(owned_by(Cohort, user))
    models = learned_models(user)
    if not models.exists():
        yield from _first_model_step(user, cohorts.filter(n_pairs__gt=1))
        return
    waiting = cohorts.filter(n_pairs=0, proposals=None, placements=None, halves=None).first()
    if waiting is not None:
        yield hooks.NextStep(
            f"Propose pairs for {waiting.name}",
            f"{waiting.n_students:,} students have no roommates yet.",
            f"{reverse('matching:proposal-new')}?cohort={waiting.pk}",
            "Propose pairs",
            icon="link",
            order=15,
        )
    checked = models.filter(proposals=None).exclude(findings={}).first()  # evaluated before use
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


def _decide_steps(user: User) -> Iterable[hooks.NextStep]:
    for proposal in being_decided(user)[:2]:
        decided = proposal.n_decided
        rest = counted(proposal.n_open, "pair")
        if decided:
            rest = "the last pair" if proposal.n_open == 1 else f"the last {rest}"
        yield hooks.NextStep(
            f"Decide {rest} of {proposal.name}",
            f"{decided:,} of {proposal.n_pairs:,} are decided. "
            "The rest are sorted so that the least certain come first.",
            reverse("matching:proposal", args=[proposal.pk]),
            "Continue deciding" if decided else "Start deciding",
            icon="list-checks",
            order=5,
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
    """Return models and proposals by name, and pairs by one or two ids on screen."""
    for model in light(owned_by(LearnedModel, user)).filter(name__icontains=query)[:MAX_HITS]:
        address = reverse("matching:model", args=[model.pk])
        yield hooks.SearchHit(model.name, "Model", address, "scale")
    for proposal in owned_by(Proposal, user).filter(name__icontains=query)[:MAX_HITS]:
        address = reverse("matching:proposal", args=[proposal.pk])
        yield hooks.SearchHit(proposal.name, "Proposal", address, "link")
    numbers = [int(text) for text in _IDS.findall(query)]
    if not 1 <= len(numbers) <= 2:
        return
    pairs = ProposedPair.objects.filter(proposal__organisation_id=user.organisation_id or 0)
    cohorts = owned_by(Proposal, user).order_by().values("cohort")
    for number in numbers:
        # By the few students of this number: an organisation has hundreds of thousands of pairs.
        students = Student.objects.filter(cohort__in=cohorts, number=number)
        keys = list(students.order_by().values_list("pk", flat=True))
        pairs = pairs.filter(Q(first__in=keys) | Q(second__in=keys))
    for pair in pairs.select_related("proposal")[:MAX_HITS]:
        address = reverse("matching:proposal", args=[pair.proposal_id])
        detail = f"Pair of {pair.proposal.name}, {pair.get_state_display().lower()}"
        yield hooks.SearchHit(pair.label, detail, f"{address}?tab=all&pair={pair.pk}", "link")
