"""Files that were uploaded in the wrong place: recognised, and moved to where they belong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count
from django.urls import reverse
from django.utils.translation import gettext as _

from engine.tabular.file_kinds import FileKind, kind_of_file
from engine.tabular.source import Source
from engine.tabular.table import Table
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Draft, Student
from webapp.cohorts.services.drafts import (
    draft_discard,
    draft_source,
    pairs_draft_keep,
    survey_draft_keep,
)
from webapp.common.errors import Refusal
from webapp.common.listing import light
from webapp.common.selectors import owned_by

MAX_COHORTS = 50  # offered for a roster
FEWEST_IDS = 5  # of a file that is compared with other years
MAX_IDS = 5_000
Move = Callable[[User, str, Source, Cohort | None], str]
_moves: dict[FileKind, Move] = {}


@dataclass(frozen=True, slots=True)
class WrongSlot:
    """Probable kind of a file in the wrong place; staff choose one of ``cohorts`` for a roster."""

    kind: FileKind
    cohorts: tuple[Cohort, ...] = ()
    why: str = ""

    @property
    def sentence(self) -> str:
        """The question to staff, with the reason where the columns alone do not give it."""
        question = self._question
        return f"{self.why} {question}" if self.why else question

    @property
    def _question(self) -> str:
        return {
            FileKind.ROOMS: _("These are rooms. Import as a building list?"),
            FileKind.ROSTER: _("This is a roster of students and rooms. Import as past roommates?"),
            FileKind.SURVEY: _("This is a survey. Import as a cohort?"),
        }[self.kind]

    @property
    def label(self) -> str:
        """The label of the button."""
        return {
            FileKind.ROOMS: _("Import as a building list"),
            FileKind.ROSTER: _("Import as past roommates"),
            FileKind.SURVEY: _("Import as a cohort"),
        }[self.kind]


def register_move(kind: FileKind, move: Move) -> None:
    """Register the import of a kind of file; it returns the address of the new preview."""
    _moves[kind] = move


def wrong_slot(
    user: User, table: Table, *expected: FileKind, cohort: Cohort | None = None
) -> WrongSlot | None:
    """Return the kind of a file if it is not an expected one and can be imported elsewhere.

    A roster belongs to a cohort: the given one, else one that staff choose. Without any cohort its
    survey comes first, so nothing is offered.
    """
    kind = kind_of_file(table)
    if kind is None or kind in expected or kind not in _moves:
        return None
    if kind is not FileKind.ROSTER or cohort is not None:
        return WrongSlot(kind)
    cohorts = tuple(light(owned_by(Cohort, user)).order_by("-created_at")[:MAX_COHORTS])
    return WrongSlot(kind, cohorts) if cohorts else None


def earlier_survey(cohort: Cohort, ids: Sequence[str]) -> WrongSlot | None:
    """Return a survey if most students of a file of late arrivals are known already.

    They are in this cohort, so that the file is its own survey, or in another cohort, so that it is
    the survey of another year.
    """
    wanted = list(dict.fromkeys(one for one in ids if one))[:MAX_IDS]
    if len(wanted) < FEWEST_IDS or FileKind.SURVEY not in _moves:
        return None
    known = Student.objects.filter(
        cohort__organisation=cohort.organisation_id,
        cohort__ids_made=False,
        cohort__half_of=None,
        original_id__in=wanted,
    ).order_by()
    rows = known.values_list("cohort", "cohort__name").annotate(count=Count("pk"))
    key, name, count = max(rows, key=lambda row: row[2], default=(None, "", 0))
    if 2 * count <= len(wanted):
        return None
    share = _("%(count)s of %(wanted)s students") % {
        "count": f"{count:,}",
        "wanted": f"{len(wanted):,}",
    }
    if key == cohort.pk:
        why = _(
            "%(share)s are in %(name)s already, so this is probably its own survey "
            "again. Late arrivals are students who are not in the cohort yet: choose "
            "their file."
        ) % {"share": share, "name": name}
    else:
        why = _(
            "%(share)s are in %(name)s, so this is probably last year’s survey. Late "
            "arrivals are students who are new: choose their file."
        ) % {"share": share, "name": name}
    return WrongSlot(FileKind.SURVEY, why=why)


def file_move(
    *, user: User, filename: str, source: Source, to: str, cohort: Cohort | None = None
) -> str:
    """Import a file as another kind; return the address of its preview.

    Raises Refusal in one sentence if there is no such kind, no cohort for a roster, or the file
    cannot be read so.
    """
    if to not in list(FileKind) or FileKind(to) not in _moves:
        raise Refusal(_("There is no such kind of file."))
    return _moves[FileKind(to)](user, filename, source, cohort)


@transaction.atomic
def draft_move(*, user: User, draft: Draft, to: str, cohort: Cohort | None) -> str:
    """Import the file of a draft as another kind and discard the draft; return the new address."""
    address = file_move(
        user=user, filename=draft.filename, source=draft_source(draft), to=to, cohort=cohort
    )
    draft_discard(user=user, draft=draft)
    return address


def _move_survey(user: User, filename: str, source: Source, cohort: Cohort | None) -> str:
    made = survey_draft_keep(user=user, filename=filename, source=source)
    return reverse("cohorts:draft", args=[made.pk])


def _move_roster(user: User, filename: str, source: Source, cohort: Cohort | None) -> str:
    if cohort is None:
        raise Refusal(_("Choose the cohort whose roommates the roster names."))
    made = pairs_draft_keep(user=user, filename=filename, source=source, cohort=cohort)
    return reverse("cohorts:pairs-draft", args=[cohort.pk, made.pk])


register_move(FileKind.SURVEY, _move_survey)
register_move(FileKind.ROSTER, _move_roster)
