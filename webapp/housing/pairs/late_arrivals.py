"""Late arrivals about whom rules of pairs say something."""

from collections.abc import Mapping

from django.db.models import Q
from django.utils.translation import gettext as _

from webapp.cohorts.models import Cohort, LateArrivals
from webapp.housing.models import PairLock, Placement
from webapp.matching.models import ForbiddenPair


def decided_about(cohort: Cohort, late: Mapping[int, LateArrivals]) -> dict[int, str]:
    """Return a sentence for each late arrival who is part of a rule since."""
    rules = Q(first__number__in=late) | Q(second__number__in=late)
    pairs = [
        pair
        for kind in (
            ForbiddenPair.objects.filter(rules, cohort=cohort),
            PairLock.objects.filter(rules, placement__cohort=cohort),
        )
        for pair in kind.values_list("first__number", "second__number")
    ]
    alone = Placement.objects.filter(cohort=cohort, is_pairs=True)
    named = {number for pair in pairs for number in pair}
    named |= {number for placement in alone.only("rules") for number in placement.singles}
    return {
        number: _("A rule about S-%(number)s was made since.") % {"number": number}
        for number in named & late.keys()
    }
