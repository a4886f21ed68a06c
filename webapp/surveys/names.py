"""Names of the people of questionnaires, shown to those who may see names of students.

Others, and sessions that hide names, see "Person 17": the number of the person in the address of
their answers.
"""

from collections.abc import Iterable, Sequence

from django.utils.translation import gettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.naming import LOOKED, MAX_LABELS, SEARCHED, may_see_names
from webapp.surveys.models import Participant, Questionnaire

IDENTITY = ("identifier", "name", "email", "code")


def shows_names(user: User) -> bool:
    """Return True if pages of this request show names to a person."""
    return may_see_names(user) and not user.hides_names


def number_label(participant: Participant) -> str:
    """Return the label of a participant without a name, such as "Person 17"."""
    return _label(participant.pk)


def _label(key: int) -> str:
    return gettext("Person %(number)s") % {"number": key}


def label_of(participant: Participant, *, with_name: bool) -> str:
    """Return the student number, e-mail or code of a participant, or the label without a name."""
    if not with_name:
        return number_label(participant)
    return participant.identifier or participant.email or participant.code


def is_meant(words: str, key: int, identity: Sequence[str], *, by_name: bool) -> bool:
    """Return True if the words of a search, in small letters, mean a participant.

    ``identity`` holds the fields of IDENTITY. Without ``by_name`` only the whole e-mail, the whole
    code or the label without a name means a person.
    """
    if words == _label(key).casefold():
        return True
    if by_name:
        return any(words in text.casefold() for text in identity)
    _, _, email, code = identity
    return words in (email.casefold(), code.casefold())


def look_noted(user: User, questionnaire: Questionnaire, page: str) -> None:
    """Write the audit line of a look at the names of the people, if the page shows names."""
    if shows_names(user):
        audit(user, LOOKED, questionnaire, page=page[:120])


def search_noted(
    user: User, questionnaire: Questionnaire, query: str, people: Iterable[Participant]
) -> None:
    """Write the audit line of a search that found people on a page without names."""
    labels = list(dict.fromkeys(number_label(one) for one in people)) if query else []
    if labels and not shows_names(user):
        audit(user, SEARCHED, questionnaire, found=labels[:MAX_LABELS], count=len(labels))
