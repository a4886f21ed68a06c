"""Names of students, shown to those who may see them; others see S-1042.

Staff see names if their organisation says so, and viewers never. A person can hide all names for
the time of a session, such as for a screen in public. Pages, exports and the API ask here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from engine.tabular.text import fold_name
from webapp.accounts.models import NamesFor, Role, User
from webapp.audit.models import AuditLine
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.common.errors import Refusal
from webapp.common.sessions import NAMES_HIDDEN

KEPT_DIRECTORIES = 64
MAX_NAMED = 200  # students of one sentence that get their names
LOOKED = "looked at names"
SEARCHED = "searched for students"
MAX_LABELS = 50  # students whom an audit line names
PAGE_OPEN = timedelta(hours=12)  # a page may stay open so long
_LABEL = re.compile(r"\bS-(\d{1,9})\b")


class Identity(NamedTuple):
    """Identity of a student; a tuple, since a page looks through thousands."""

    number: int
    original_id: str
    name: str
    preferred: str
    pronouns: str
    email: str

    @property
    def label(self) -> str:
        """The id on screen."""
        return f"S-{self.number}"

    @property
    def shown(self) -> str:
        """The name as it is shown: the preferred name, with the full name if it adds something."""
        if not self.preferred or self.preferred == self.name:
            return self.name
        is_whole = " " in self.preferred or not self.name
        return self.preferred if is_whole else f"{self.preferred} ({self.name})"


@dataclass(frozen=True, slots=True)
class Directory:
    """Identities of a cohort by number, and the folded words by which each is searched.

    ``has_names`` is True if somebody has a name.
    """

    by_number: Mapping[int, Identity]
    words: tuple[tuple[int, str], ...]
    has_names: bool


def directory_of(cohort: Cohort) -> Directory:
    """Return the identities of a cohort; a process caches the last cohorts by their revision."""
    return _directory(cohort.pk, cohort.revision, cohort.ids_made)


def forget_directories() -> None:
    """Delete the identities cached in this process; call it when a cohort is purged."""
    _directory.cache_clear()


@lru_cache(maxsize=KEPT_DIRECTORIES)
def _directory(cohort_pk: UUID, revision: int, ids_made: bool) -> Directory:
    rows = Student.objects.filter(cohort=cohort_pk).order_by("number")
    found = {row[0]: Identity(*row) for row in rows.values_list(*Identity._fields)}
    words = tuple((number, _folded(one, ids_made)) for number, one in found.items())
    has_names = any(one.name or one.preferred for one in found.values())
    return Directory(found, words, has_names)


def _folded(one: Identity, ids_made: bool) -> str:
    """Return the text in which a search looks: folded names, number and e-mail, one a line."""
    own = "" if ids_made else one.original_id
    kept = (fold_name(one.name), fold_name(one.preferred), own.casefold(), one.email.casefold())
    return "\n".join(kept)


def may_see_names(user: User) -> bool:
    """Return True if a person sees names of students; a viewer never does."""
    wanted = {NamesFor.STAFF: Role.STAFF, NamesFor.ADMINISTRATORS: Role.ADMINISTRATOR}
    if user.organisation is None:
        return False
    role = wanted.get(NamesFor(user.organisation.names_for))
    return role is not None and user.has_role(role)


class NamesRefusedError(Refusal):
    """Refusal of a file with names to a person who does not see names now."""


def check_may_name(user: User) -> None:
    """Raise NamesRefusedError if a person does not see names, or hides them in this session."""
    if not may_see_names(user):
        raise NamesRefusedError(
            _(
                "Your organisation does not show names to your role. Leave out the columns "
                "of names, pronouns and e-mails."
            )
        )
    if user.hides_names:
        raise NamesRefusedError(
            _("You hide names now, so no file with names is made. Choose “Show names” first.")
        )


def are_hidden(request: HttpRequest) -> bool:
    """Return True if the person hides names in this session."""
    session = getattr(request, "session", None)
    return bool(session is not None and session.get(NAMES_HIDDEN))


def sees_names(request: HttpRequest) -> bool:
    """Return True if the person of a request sees names now: has the right, and hides none."""
    user = request.user
    return isinstance(user, User) and may_see_names(user) and not are_hidden(request)


_TYPED = re.compile(r"“[^”]*”")
_ROW = re.compile(r"^Row [\d,]+")
_REASONS = (
    "has no id.",
    "is not a student of this cohort.",
    "are different students.",
    "stands in row",
)


def without_people(sentence: str) -> str:
    """Return a sentence about a file without what the file says of a person; row numbers stay.

    Only reasons that are known to hold no person follow the number of a row. They are known in
    English only; in other languages nothing of the sentence is shown.
    """
    if not (get_language() or "en").startswith("en"):
        return _("A row of the file has a problem. Look at it in your file.")
    row = _ROW.match(sentence)
    if row is None:
        return _TYPED.sub("“…”", sentence)
    reason = next((one for one in _REASONS if one in sentence), "")
    if reason.endswith("row"):
        return _("%(row)s repeats another row. Look at it in your file.") % {"row": row[0]}
    return (
        f"{row[0]}: … {reason}"
        if reason
        else _("%(row)s: look at this row in your file.") % {"row": row[0]}
    )


@dataclass(slots=True)
class ShownNames:
    """Names of one cohort's students as one person sees them; none without the right."""

    people: Mapping[int, Identity] = field(default_factory=dict)

    def name(self, number: int) -> str:
        """Return the name of a student, or "" if there is none to show."""
        one = self.people.get(number)
        return one.shown if one else ""

    def text(self, number: int) -> str:
        """Return a student in words: "José Silva (S-1042)", or "S-1042" without a name."""
        name = self.name(number)
        return f"{name} (S-{number})" if name else f"S-{number}"

    def pair_text(self, first: int, second: int) -> str:
        """Return two students in words: "José Silva (S-1042) + Zoë Müller (S-1077)"."""
        return f"{self.text(first)} + {self.text(second)}"

    def in_words(self, sentence: str) -> str:
        """Return a sentence with the names of the students that it mentions."""
        return (
            _LABEL.sub(lambda found: self.text(int(found[1])), sentence)
            if self.people
            else sentence
        )


def shown_names(user: User, cohort: Cohort, *, is_hidden: bool = False) -> ShownNames:
    """Return the names of a cohort as a person of its organisation sees them."""
    is_own = user.organisation_id == cohort.organisation_id
    if is_hidden or user.hides_names or not is_own or not may_see_names(user):
        return ShownNames()
    return ShownNames(directory_of(cohort).by_number)


def names_on_page(request: Any, cohort: Cohort) -> ShownNames:
    """Return the names for a page, and write the audit line of the look at this list.

    A page asks once for each cohort. Parts of a page that is open already add no line.
    """
    known: dict[UUID, ShownNames] = request.__dict__.setdefault("_shown_names", {})
    if cohort.pk not in known:
        names = shown_names(request.user, cohort, is_hidden=are_hidden(request))
        known[cohort.pk] = names
        if names.people and directory_of(cohort).has_names and not _is_part(request, cohort):
            audit(request.user, LOOKED, cohort, page=request.path[:120])
    return known[cohort.pk]


def sentence_on_page(request: Any, sentence: str) -> str:
    """Return a sentence with the names of the students of the organisation that it mentions.

    Reports and refusals are stored with ids on screen alone; names are added when they are shown.
    An id that several cohorts gave, as before ids were unique, means the student of the page's
    cohort, and stays alone if the page shows no student of one of them.
    """
    user = getattr(request, "user", None)
    numbers = {int(text) for text in _LABEL.findall(sentence)}
    if not numbers or user is None or not user.is_authenticated:
        return sentence
    if not may_see_names(user) or are_hidden(request):
        return sentence
    shown: dict[UUID, ShownNames] = request.__dict__.get("_shown_names", {})
    of_page = next(iter(shown.values())) if len(shown) == 1 else ShownNames()
    if numbers <= of_page.people.keys():
        return of_page.in_words(sentence)
    found: dict[int, set[UUID]] = {}
    mentioned = Student.objects.filter(
        cohort__organisation=user.organisation_id, number__in=sorted(numbers)[:MAX_NAMED]
    ).order_by()
    for number, cohort, whole in mentioned.values_list("number", "cohort", "cohort__half_of"):
        found.setdefault(number, set()).add(whole or cohort)
    found = {n: keys if len(keys) == 1 else keys & shown.keys() for n, keys in found.items()}
    sure = {number: next(iter(keys)) for number, keys in found.items() if len(keys) == 1}
    cohorts = Cohort.objects.defer(*Cohort.HEAVY).in_bulk(set(sure.values()))
    return _LABEL.sub(
        lambda label: (
            names_on_page(request, cohorts[key]).text(int(label[1]))
            if (key := sure.get(int(label[1])))
            else label[0]
        ),
        sentence,
    )


def _is_part(request: Any, cohort: Cohort) -> bool:
    """Return True for a part of a page whose look at these names has its line already."""
    if not getattr(request, "htmx", False):
        return False
    return AuditLine.objects.filter(
        organisation=cohort.organisation_id,
        verb=LOOKED,
        user=request.user,
        target_id=str(cohort.pk),
        created_at__gte=timezone.now() - PAGE_OPEN,
    ).exists()


class Search:
    """Search for students of a cohort by name, number, e-mail or id on screen."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())

    @cached_property
    def whole(self) -> str:
        """The text as a number or an e-mail is compared."""
        return self.text.casefold()

    @cached_property
    def words(self) -> list[str]:
        """The folded words; each begins a word of a name."""
        return fold_name(self.text).split()

    @cached_property
    def number(self) -> int | None:
        """The number of a text such as S-1042 or 1042."""
        found = re.fullmatch(r"[sS]-?(\d{1,9})|(\d{4,9})", self.text)
        return int(found[1] or found[2]) if found else None

    def find(self, cohort: Cohort, *, by_name: bool) -> list[Identity]:
        """Return the students of a cohort that the text means; ``by_name`` needs the right.

        Every word of the text begins a word of the name, in any order: accents and case do not
        matter. A number or an e-mail is given whole; an e-mail also up to its @.
        """
        directory = directory_of(cohort)
        found: dict[int, Identity] = {}
        if self.number is not None and self.number in directory.by_number:
            found[self.number] = directory.by_number[self.number]
        if by_name:
            for number in self._named(directory):
                found[number] = directory.by_number[number]
        return list(found.values())

    def _named(self, directory: Directory) -> list[int]:
        whole, wanted = self.whole, self.words
        first = wanted[0] if wanted else whole
        return [
            number
            for number, text in directory.words
            if (first in text or whole in text) and _fits(text, whole, wanted)
        ]


def numbers_meant(user: User, cohort: Cohort, text: str) -> frozenset[int]:
    """Return the students of a cohort whom a person finds by name, number or e-mail.

    Nobody for people without the right. A page that shows the names leaves its audit line for the
    look; while names are hidden, the search leaves one.
    """
    if not text.strip() or not may_see_names(user):
        return frozenset()
    found = frozenset(one.number for one in Search(text).find(cohort, by_name=True))
    if found and user.hides_names:
        labels = [f"S-{number}" for number in sorted(found)]
        audit(user, SEARCHED, cohort, found=labels[:MAX_LABELS], count=len(labels))
    return found


def _fits(text: str, whole: str, wanted: list[str]) -> bool:
    name, preferred, own, email = text.split("\n", 3)
    if whole == own or (email and whole in (email, email.split("@")[0])):
        return True
    words = f"{name} {preferred}".split()
    return bool(wanted) and all(any(word.startswith(part) for word in words) for part in wanted)
