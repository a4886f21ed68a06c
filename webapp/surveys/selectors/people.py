"""Participants of a questionnaire for the tab of people."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Count, Max, Q

from webapp.accounts.models import User
from webapp.cohorts.naming import may_see_names
from webapp.common.listing import Tally, list_page
from webapp.surveys.models import Mail, Questionnaire
from webapp.surveys.names import search_noted
from webapp.surveys.people import withdrawn_from_cohorts
from webapp.surveys.selectors.answers import STATES, PeopleFilter, people_found, state_in_words
from webapp.surveys.selectors.clashes import Clash
from webapp.surveys.selectors.requests import request_counts
from webapp.surveys.services.invitations import mails_due

SHOWN = 200
FAILED_SHOWN = 50


def people_context(
    found: Questionnaire, parameters: Mapping[str, str], several: Sequence[Clash], user: User
) -> dict[str, Any]:
    """Return one page of the people with their mails, and the open tasks about them.

    ``several`` are the student numbers with several sets of answers.
    """
    n_requests, n_mutual = request_counts(found)
    wanted = PeopleFilter.of(parameters, by_name=may_see_names(user))
    sent = Count("pk", filter=Q(state=Mail.SENT))
    mails = Tally(
        Mail.objects.all(), "participant", {"n_sent": sent, "last_sent_at": Max("sent_at")}
    )
    people = people_found(found, wanted).select_related("cohort").defer("answers")
    listing = list_page(people, parameters, mails, search=())
    search_noted(user, found, wanted.query, listing.rows)
    return {
        "people": [(one, state_in_words(one)) for one in listing.rows],
        "people_page": listing.page,
        "wanted": wanted,
        "how_far": [(key, words) for key, (words, _) in STATES.items()],
        "n_requests": n_requests,
        "n_mutual": n_mutual,
        "n_given_twice": len(several),
        "n_undecided": sum(clash.is_open for clash in several),
        "withdrawn": withdrawn_from_cohorts(found),
        "bounced": found.participants.exclude(bounced_at=None)[:SHOWN],
        "failed": Mail.objects.filter(
            participant__questionnaire=found, state=Mail.FAILED
        ).select_related("participant")[:FAILED_SHOWN],
        "n_to_invite": mails_due(found, is_reminder=False).count(),
        "n_to_remind": mails_due(found, is_reminder=True).count(),
        "reminders": found.scheduled_reminders.all()[:SHOWN],
    }
