"""Files of translations: stored as a draft, checked by a person, and used whole or not at all."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext

from engine.tabular.layout import SheetLayout
from engine.tabular.table import build_table
from webapp.accounts.models import User
from webapp.cohorts.models import Draft
from webapp.cohorts.services.drafts import (
    DraftChangedError,
    draft_keep,
    draft_table,
    draft_update,
)
from webapp.cohorts.student_files import FileChoices
from webapp.common.formats import listed
from webapp.files.quota import with_fresh_count
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.models import Questionnaire
from webapp.surveys.services.translations import LANGUAGES, translations_set
from webapp.surveys.translation_files import (
    IGNORE,
    UNKNOWN,
    TranslationFile,
    guess_uses,
    read_translations,
    uses_of_columns,
)
from webapp.tabular.reading import read_source, refusals

PURPOSE = "translations"
MAX_FILE = 1_000_000  # bytes


@with_fresh_count
def translation_file_create(
    *,
    user: User,
    questionnaire: Questionnaire,
    filename: str,
    size: int,
    read: Callable[[], bytes],
) -> Draft:
    """Read an upload and guess its columns; the questionnaire is not changed yet.

    The first row of the first sheet names the columns. Raises TableRefusal, QuotaError or
    QuestionnaireError in one sentence.
    """
    if size > MAX_FILE:
        raise QuestionnaireError(gettext("The file is larger than 1 MB."))
    source = read_source(size, read)
    lines = source.sheets[0].lines
    with refusals():
        table = build_table(source, SheetLayout(header_row=lines[0].number if lines else 1))
    choices = FileChoices(
        tuple(guess_uses(questionnaire, table)),
        layout=table.layout,
        back=reverse("surveys:languages", args=[questionnaire.pk]),
    )
    return draft_keep(
        user=user,
        filename=filename,
        source=source,
        table=table,
        choices=choices.to_json(),
        purpose=PURPOSE,
        about=questionnaire.pk,
    )


def translation_file_read(*, draft: Draft, questionnaire: Questionnaire) -> TranslationFile:
    """Return the effect of a draft on a questionnaire as it is now."""
    uses = FileChoices.from_json(draft.choices).uses
    return read_translations(questionnaire, draft_table(draft), uses)


def translation_file_assign(
    *, draft: Draft, questionnaire: Questionnaire, column: int | None, use: str, version: int
) -> None:
    """Give a column another use; the column that had this use before is left out.

    Raises QuestionnaireError if there is no such column or use, DraftChangedError if the draft
    changed since ``version``.
    """
    choices = FileChoices.from_json(draft.choices)
    if column is None or column >= len(choices.uses) or use not in uses_of_columns(questionnaire):
        raise QuestionnaireError(gettext("There is no such column or use of a column."))
    is_single = use not in (IGNORE, UNKNOWN)
    uses = [IGNORE if is_single and own == use else own for own in choices.uses]
    uses[column] = use
    draft_update(draft=draft, choices=replace(choices, uses=tuple(uses)).to_json(), version=version)


@transaction.atomic
def translation_file_use(
    *, user: User, draft: Draft, questionnaire: Questionnaire, version: int, shown: int
) -> str:
    """Replace the translations by those of a checked file, all or none; return one sentence.

    Parameters
    ----------
    version : the version of the draft that the page showed.
    shown : the version of the questionnaire with which the page compared the file.

    Raises
    ------
    QuestionnaireError
        If a problem remains, or somebody changed the questionnaire since the page was shown.
    DraftChangedError
        If somebody changed or finished the draft meanwhile.
    """
    found = translation_file_read(draft=draft, questionnaire=questionnaire)
    if found.problems:
        raise QuestionnaireError(
            gettext("%(problem)s Nothing was changed.") % {"problem": found.problems[0]}
        )
    if not found.can_use:
        raise QuestionnaireError(gettext("The file changes no text."))
    claimed, _rest = Draft.objects.filter(pk=draft.pk, version=version).delete()
    if not claimed:
        raise DraftChangedError(gettext("This upload was changed or finished by somebody else."))
    translations_set(
        user=user, questionnaire=questionnaire, version=shown, translations=found.translations
    )
    names = listed([LANGUAGES[code] for code in found.translations])
    return gettext("The texts of the file are used: %(languages)s.") % {"languages": names}


def translation_files_discard(*, questionnaire: UUID) -> None:
    """Remove the uploads for a questionnaire that was removed."""
    Draft.objects.filter(purpose=PURPOSE, about=questionnaire).delete()
