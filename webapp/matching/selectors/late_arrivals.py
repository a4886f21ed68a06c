"""Late arrivals about whom proposals store something."""

from collections.abc import Mapping

from django.db.models import Q

from webapp.cohorts.models import Cohort, LateArrivals
from webapp.jobs.models import ACTIVE_STATES
from webapp.matching.models import ForbiddenPair, LockRule, Proposal


def decided_about(cohort: Cohort, late: Mapping[int, LateArrivals]) -> dict[int, str]:
    """Return a sentence for each late arrival who is part of a proposal or of a rule since."""
    found: dict[int, str] = {}
    since = min(one.created_at for one in late.values())
    newer = Q(best_at__gt=since) | Q(job__state__in=ACTIVE_STATES)
    for name, best_at, state in Proposal.objects.filter(newer, cohort=cohort).values_list(
        "name", "best_at", "job__state"
    ):
        for number, one in late.items():
            if state in ACTIVE_STATES:
                found[number] = f"{name} is being computed now. Wait for it, or cancel it."
            elif best_at is not None and best_at > one.created_at:
                found.setdefault(number, f"{name} was proposed with S-{number} since.")
    rules = Q(first__number__in=late) | Q(second__number__in=late)
    pairs = [
        pair
        for kind in (
            ForbiddenPair.objects.filter(rules, cohort=cohort),
            LockRule.objects.filter(rules, proposal__cohort=cohort),
        )
        for pair in kind.values_list("first__number", "second__number")
    ]
    alone = Proposal.objects.filter(cohort=cohort).values_list("singles", flat=True)
    named = {number for pair in pairs for number in pair} | {n for own in alone for n in own}
    for number in named & late.keys():
        found.setdefault(number, f"A rule about S-{number} was made since.")
    return found
