"""Context of the page of a placement's letters."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, LateArrivals
from webapp.cohorts.naming import numbers_meant
from webapp.common.listing import list_page
from webapp.common.parameters import digits_of, whole_number
from webapp.common.selectors import owned_by
from webapp.housing.models import Placement
from webapp.letters.models import Letter, LetterTemplate
from webapp.letters.recipients import problems_of, recipients_of, subject_for, text_for
from webapp.letters.services.letters import letter_counts, letters_due
from webapp.translation.lazy import gettext_lazy

STATES = (
    ("sent", gettext_lazy("Sent"), (Letter.SENT,)),
    ("waiting", gettext_lazy("On their way"), (Letter.WAITING, Letter.SENDING)),
    ("failed", gettext_lazy("Did not arrive"), (Letter.FAILED, Letter.BOUNCED)),
    ("stopped", gettext_lazy("Stopped"), (Letter.STOPPED,)),
)


def letters_context(
    user: User, placement: Placement, parameters: Mapping[str, str]
) -> dict[str, Any]:
    """Return the context of the page for the parameters of its address."""
    templates = list(owned_by(LetterTemplate, user))
    wanted = parameters.get("letter", "")
    template = next((one for one in templates if str(one.pk) == wanted), None)
    template = template or next(iter(templates), None)
    context: dict[str, Any] = {
        "placement": placement,
        "templates": templates,
        "template": template,
    }
    if template is None or not placement.is_computed:
        return context
    recipients = recipients_of(placement, template)
    problems = problems_of(template, placement, recipients)
    due = letters_due(template, placement, recipients)
    counts = letter_counts(placement, template)
    tab = next((name for name, _, _ in STATES if name == parameters.get("show")), "")
    states = [(name, words, sum(counts[s] for s in within)) for name, words, within in STATES]
    if not tab:
        tab = "failed" if counts[Letter.FAILED] + counts[Letter.BOUNCED] else "sent"
    within = next(found for name, _, found in STATES if name == tab)
    letters = template.letters.filter(placement=placement, state__in=within)
    return (
        context
        | {
            "n_recipients": len(recipients),
            "problems": problems,
            "is_blocked": any(problem.blocks for problem in problems),
            "due": due,
            "n_due": len(due.everybody),
            "n_waiting": counts[Letter.WAITING] + counts[Letter.SENDING],
            "n_undelivered": sum(
                counts[s] for s in (Letter.FAILED, Letter.BOUNCED, Letter.STOPPED)
            ),
            "n_sent": counts[Letter.SENT],
            "tab": tab,
            "reads_bounces": bool(settings.BOUNCES_URL),
            "states": states,
            "listing": list_page(
                letters.select_related("student").defer("text", "student__answers"),
                parameters,
                found=partial(_letters_found, user, placement.cohort),
            ),
        }
        | _preview(template, recipients, parameters.get("student", "").strip()[:100], user)
    )


def _letters_found(
    user: User, cohort: Cohort, letters: QuerySet[Letter], query: str
) -> QuerySet[Letter]:
    """Return the letters of the students whom a search means, and to addresses that hold it."""
    people, digits = numbers_meant(user, cohort, query), digits_of(query)
    if digits:
        people |= {int(digits[:9])}
    words = query.casefold()
    known = letters.order_by().values_list("pk", "address")  # encrypted: searched here
    keys = [key for key, address in known if words in address.casefold()]
    return letters.filter(Q(student__number__in=sorted(people)) | Q(pk__in=keys))


def _preview(template: LetterTemplate, recipients: Any, wanted: str, user: User) -> dict[str, Any]:
    """Return the letter of the student whom the address means, or of the first student."""
    if not recipients:
        return {}
    number = whole_number(digits_of(wanted))
    places = {recipient.number: k for k, recipient in enumerate(recipients)}
    if number not in places and wanted:
        people = numbers_meant(user, recipients[0].student.cohort, wanted)
        number = next((one for one in places if one in people), number)
    index = places.get(number, 0) if number is not None else 0
    chosen = recipients[index]
    return {
        "chosen": chosen,
        "not_found": bool(wanted) and chosen.number != number,
        "subject": subject_for(template, chosen),
        "text": text_for(template, chosen),
        "previous": recipients[index - 1].number if index else None,
        "next": recipients[index + 1].number if index + 1 < len(recipients) else None,
    }


def written_to(cohort: Cohort, late: Mapping[int, LateArrivals]) -> dict[int, str]:
    """Return a sentence for each late arrival to whom a letter was written."""
    letters = Letter.objects.filter(student__cohort=cohort, student__number__in=late)
    numbers = letters.values_list("student__number", flat=True).distinct()
    return {
        number: _("A letter was written to S-%(number)s since.") % {"number": number}
        for number in numbers
    }
