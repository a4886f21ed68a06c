"""From an upload to a checked draft. The file is written first, so that every row has its file."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from cryptography.fernet import Fernet
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from engine.tabular.causes import Cause
from engine.tabular.choices import Choices
from engine.tabular.guesses import guess_choices
from engine.tabular.layout import SheetLayout, find_layout, layout_at, sheet_layout
from engine.tabular.pair_choices import (
    PairChoices,
    find_pairs_layout,
    guess_pair_choices,
    with_whole_names,
)
from engine.tabular.pairs import PairsPreview, check_pairs
from engine.tabular.person_search import People
from engine.tabular.preview import Preview, build_preview
from engine.tabular.recipes import recipe_cause, recipe_used
from engine.tabular.review import Review, review
from engine.tabular.source import Source
from engine.tabular.table import Table, build_table
from engine.tabular.undo import taken_back, undo_step, with_step
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.draft_files import DraftFile, draft_file, draft_path, keep_draft_file
from webapp.cohorts.models import Cohort, Draft, Recipe
from webapp.cohorts.services.recipes import known_form
from webapp.common.errors import ConflictError, Refusal
from webapp.files import store
from webapp.files.quota import check_quota, with_fresh_count
from webapp.tabular.reading import TableRefusal, read_source, refusals


class DraftChangedError(ConflictError):
    """Refusal because somebody else changed the object since the page was loaded."""


@with_fresh_count
def draft_create(
    *,
    user: User,
    filename: str,
    size: int,
    read: Callable[[], bytes],
    cohort: Cohort | None = None,
) -> Draft:
    """Read an upload, guess the use of every column, and store it as a private draft.

    Parameters
    ----------
    size : int
        Bytes, checked before anything is read.
    read : callable
        Returns the bytes of the file.
    cohort : Cohort, optional
        The cohort whose past pairs the file holds; a new cohort when None.

    Raises
    ------
    TableRefusal, QuotaError
        One sentence; nothing was saved.
    """
    source = read_source(size, read)
    if cohort is None:
        return survey_draft_keep(user=user, filename=filename, source=source)
    return pairs_draft_keep(user=user, filename=filename, source=source, cohort=cohort)


def survey_draft_keep(*, user: User, filename: str, source: Source) -> Draft:
    """Store a file that was read already as a draft of a survey.

    Raises TableRefusal or QuotaError in one sentence; nothing was saved.
    """
    with refusals():
        layout = find_layout(source)
        table = build_table(source, layout)
    choices = guess_choices(table)
    recipe = known_form(user.own_organisation.pk, table)
    return draft_keep(
        user=user,
        filename=filename,
        source=source,
        table=table,
        choices=choices.to_json(),
        recipe=recipe,
    )


def pairs_draft_keep(*, user: User, filename: str, source: Source, cohort: Cohort) -> Draft:
    """Store a file that was read already as a draft of a cohort's past pairs.

    Raises TableRefusal or QuotaError in one sentence; nothing was saved.
    """
    people = people_of(cohort)
    with refusals():
        layout = find_pairs_layout(source, people)
        table = build_table(source, layout)
    if table.n_columns < 2:
        raise TableRefusal(
            _("The file has one column; two columns of ids are expected. Nothing was saved.")
        )
    return draft_keep(
        user=user,
        filename=filename,
        source=source,
        table=table,
        choices=guess_pair_choices(with_whole_names(table), people).to_json(),
        cohort=cohort,
    )


def draft_keep(
    *,
    user: User,
    filename: str,
    source: Source,
    table: Table,
    choices: dict[str, Any],
    cohort: Cohort | None = None,
    recipe: Recipe | None = None,
    purpose: str = "",
    about: UUID | None = None,
) -> Draft:
    """Store a file and the way it is read as a private draft; its rows are encrypted.

    ``about`` is the key of an object of another application that the file is for.
    """
    uuid, name = uuid4(), clean_filename(filename)
    path = draft_path(user.own_organisation.pk, uuid)
    key = Fernet.generate_key().decode("ascii")
    keep_draft_file(path, key, source, table)
    try:
        with transaction.atomic():
            draft = Draft.objects.create(
                uuid=uuid,
                organisation=user.own_organisation,
                created_by=user,
                filename=name,
                n_rows=table.n_rows,
                n_columns=table.n_columns,
                read_as=table.description[:60],
                choices=choices,
                file_key=key,
                cohort=cohort,
                recipe=recipe,
                purpose=purpose,
                about=about,
            )
            audit(user, "uploaded", draft, rows=table.n_rows, columns=table.n_columns)
            check_quota(user.organisation_id, written=path.stat().st_size)
    except BaseException:
        store.remove(path)
        raise
    return draft


def clean_filename(name: str) -> str:
    """Return the last part of a file name, without control characters, at most 200 characters."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(c for c in last if c.isprintable())[:200] or "upload"


def draft_first_causes(draft: Draft) -> tuple[Cause, ...]:
    """Return the first messages about a draft: that its form was read before."""
    table, choices = draft_table(draft), draft.choices
    if draft.recipe is None:
        return ()
    content, name = draft.recipe.content, draft.recipe.cohort_name
    if choices.get("recipe"):
        return (recipe_used(table, content, name),)
    if "recipe" in choices.get("settled", ()):
        return ()
    return (recipe_cause(table, content, name),)


def draft_review(draft: Draft) -> Review:
    """Return all messages about a draft under its present choices."""
    return review(draft_preview(draft), *draft_first_causes(draft))


def draft_preview(draft: Draft) -> Preview:
    """Return the preview of a draft under its present choices."""
    table = draft_table(draft)
    return build_preview(table, Choices.from_json(draft.choices))


def people_of(cohort: Cohort) -> People:
    """Return the people that a file of roommates may name: by id, and by stored e-mail and name."""
    rows = list(cohort.students.values_list("original_id", "email", "name"))
    ids, emails, names = zip(*rows, strict=True) if rows else ((), (), ())
    return People(ids, emails, names)


def draft_table(draft: Draft) -> Table:
    """Return the rows of a draft."""
    return _file_of(draft).table(SheetLayout.from_json(draft.choices.get("layout")))


def pairs_draft_table(draft: Draft) -> Table:
    """Return the rows of a draft of past pairs, with whole names."""
    return with_whole_names(draft_table(draft))


def draft_source(draft: Draft) -> Source:
    """Return the file of a draft as it was uploaded, with all its sheets."""
    return _file_of(draft).source


def _file_of(draft: Draft) -> DraftFile:
    return draft_file(draft_path(draft.organisation_id, draft.uuid), draft.file_key)


def draft_reread(*, draft: Draft, sheet: int, header_row: int | None, version: int) -> Draft:
    """Read a draft's file again from another sheet or header row, and guess its columns again.

    Raises TableRefusal if the file cannot be read so, DraftChangedError if the draft changed
    meanwhile; then nothing is changed.
    """
    source = draft_source(draft)
    now = SheetLayout.from_json(draft.choices.get("layout")) or find_layout(source)
    with refusals():
        if sheet != now.sheet or header_row is None:
            layout = sheet_layout(source, sheet)
        else:
            layout = layout_at(source, sheet, header_row)
        table = build_table(source, layout)
    with transaction.atomic():
        updated = draft_update(draft=draft, choices=guess_choices(table).to_json(), version=version)
        _describe(updated, table)
    return updated


def _describe(draft: Draft, table: Table) -> None:
    Draft.objects.filter(pk=draft.pk).update(
        n_rows=table.n_rows, n_columns=table.n_columns, read_as=table.description
    )
    draft.refresh_from_db()


def read_pair_choices(draft: Draft) -> PairChoices:
    """Return the choices by which the rows of a pairs draft are read."""
    return PairChoices.from_json(draft.choices)


def pairs_preview(draft: Draft) -> PairsPreview:
    """Return the match of a pairs draft's rows with its cohort."""
    people = people_of(draft.own_cohort)
    return check_pairs(pairs_draft_table(draft), people, read_pair_choices(draft))


def draft_update(*, draft: Draft, choices: dict[str, Any], version: int) -> Draft:
    """Store new choices if nobody stored others since ``version``.

    Raises DraftChangedError otherwise; nothing is changed then.
    """
    if choices == draft.choices and version == draft.version:
        return draft  # no change to undo
    undo = with_step(draft.undo, undo_step(draft.choices, choices))
    _store(draft, version, choices=choices, undo=undo)
    return draft


def draft_undo(*, draft: Draft, version: int) -> Draft:
    """Undo the last change of the choices; raise Refusal if there is none."""
    if not draft.undo:
        raise Refusal(_("There is nothing to undo."))
    *rest, last = draft.undo
    with transaction.atomic():
        _store(draft, version, choices=taken_back(draft.choices, last), undo=rest)
        _describe(draft, draft_table(draft))
    return draft


def _store(draft: Draft, version: int, **values: Any) -> None:
    # The version that was read must match too: Undo depends on the choices at that version.
    same = Draft.objects.filter(pk=draft.pk, version=version)
    if version != draft.version or not same.update(**values, version=version + 1):
        raise DraftChangedError(_("Somebody else changed this import meanwhile."))
    draft.refresh_from_db()


def draft_discard(*, user: User, draft: Draft) -> None:
    """Remove a draft and its file."""
    with transaction.atomic():
        audit(user, "discarded", draft)
        draft.delete()


def drafts_expire() -> int:
    """Remove uploads that were not imported or discarded in time; return how many.

    An upload holds all columns of the file, including ignored ones, so it must not be kept for
    long. This runs once a day: uploads that would be too old tomorrow are removed today.
    """
    oldest = timezone.now() - timedelta(days=Draft.KEPT_DAYS - 1)
    return sum(_expire(draft) for draft in Draft.objects.filter(created_at__lt=oldest))


@transaction.atomic
def _expire(draft: Draft) -> bool:
    removed, _rest = Draft.objects.filter(pk=draft.pk).delete()
    if removed:  # otherwise it was just imported or discarded
        audit(None, "expired", draft, organisation=draft.organisation, rows=draft.n_rows)
    return bool(removed)
