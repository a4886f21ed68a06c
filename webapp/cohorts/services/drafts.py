"""From an upload to a checked draft. The file is written first, so that no row lacks its file."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

from cryptography.fernet import Fernet
from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.draft_files import (
    draft_file_table,
    draft_path,
    draft_source,
    write_draft_source,
)
from webapp.cohorts.models import Cohort, Draft, Recipe
from webapp.cohorts.tables.causes import Cause
from webapp.cohorts.tables.choices import Choices
from webapp.cohorts.tables.guesses import guess_choices
from webapp.cohorts.tables.layout import SheetLayout, find_layout, layout_at, sheet_layout
from webapp.cohorts.tables.pair_choices import PairChoices, guess_pair_choices
from webapp.cohorts.tables.pairs import PairsPreview, check_pairs
from webapp.cohorts.tables.people import People
from webapp.cohorts.tables.preview import Preview, build_preview
from webapp.cohorts.tables.reading import check_file_size, read_source
from webapp.cohorts.tables.recipes import (
    form_of,
    is_same_form,
    recipe_cause,
    recipe_of,
    recipe_used,
    similarity,
)
from webapp.cohorts.tables.review import Review, review
from webapp.cohorts.tables.source import Source, TableError
from webapp.cohorts.tables.steps_back import step_back, taken_back, with_step
from webapp.cohorts.tables.table import Table, build_table
from webapp.common.errors import ConflictError, Refusal
from webapp.files import store
from webapp.files.quota import check_quota, with_fresh_count

_RECIPES = 100  # forms of an organisation that a file is compared with, last used first


class DraftChangedError(ConflictError):
    """Somebody else changed the object since the page was loaded."""


@with_fresh_count
def draft_create(
    *,
    user: User,
    filename: str,
    size: int,
    read: Callable[[], bytes],
    cohort: Cohort | None = None,
) -> Draft:
    """Read an upload, guess the use of every column, and keep it as a private draft.

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
    TableError, QuotaError
        One sentence; nothing was saved.
    """
    check_file_size(size)
    source = read_source(read())
    table = build_table(source, find_layout(source))
    if cohort is None:
        choices = guess_choices(table).to_json()
    elif table.n_columns < 2:
        raise TableError(
            "The file has one column; two columns of ids are expected. Nothing was saved."
        )
    else:
        choices = guess_pair_choices(table, people_of(cohort)).to_json()
    uuid = uuid4()
    path = draft_path(user.organisation_id, uuid)
    key = Fernet.generate_key().decode("ascii")
    write_draft_source(path, source, key)
    try:
        with transaction.atomic():
            draft = Draft.objects.create(
                uuid=uuid,
                organisation=user.organisation,
                created_by=user,
                filename=clean_filename(filename),
                n_rows=table.n_rows,
                n_columns=table.n_columns,
                read_as=table.description,
                choices=choices,
                file_key=key,
                cohort=cohort,
                recipe=None if cohort else _known_form(user.organisation_id, table),
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
    """Return what is to be said of a draft before all else: that its form was read before."""
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
    """Return everything that is to be said of a draft under its present choices."""
    return review(draft_preview(draft), *draft_first_causes(draft))


def _known_form(organisation_id: int, table: Table) -> Recipe | None:
    """Return the recipe of the form that a file has most in common with, if enough."""
    recipes = Recipe.objects.filter(organisation_id=organisation_id)
    exact = recipes.filter(form=form_of(table)).first()
    if exact is not None:
        return exact
    best = max(recipes[:_RECIPES], key=lambda one: similarity(table, one.content), default=None)
    return best if best is not None and is_same_form(table, best.content) else None


def recipe_keep(*, draft: Draft, preview: Preview, cohort: Cohort) -> None:
    """Remember how this form was read, in place of what was remembered of it before."""
    Recipe.objects.update_or_create(
        organisation_id=draft.organisation_id,
        form=form_of(preview.table),
        defaults={
            "created_by": cohort.created_by,
            "cohort_name": cohort.name,
            "content": recipe_of(preview.table, preview.choices),
            "updated_at": timezone.now(),
        },
    )


def draft_preview(draft: Draft) -> Preview:
    """Return the preview of a draft under its present choices."""
    return build_preview(draft_table(draft), Choices.from_json(draft.choices))


def people_of(cohort: Cohort) -> People:
    """Return whom a file of roommates may name: by id, and by e-mail and name where kept."""
    rows = list(cohort.students.values_list("original_id", "email", "name"))
    ids, emails, names = zip(*rows, strict=True) if rows else ((), (), ())
    return People(ids, emails, names)


def draft_table(draft: Draft) -> Table:
    """Return the rows of a draft."""
    layout = SheetLayout.from_json(draft.choices.get("layout"))
    path = draft_path(draft.organisation_id, draft.uuid)
    return draft_file_table(path, draft.file_key, layout)


def draft_file(draft: Draft) -> Source:
    """Return the file of a draft as it stands, all its sheets."""
    return draft_source(draft_path(draft.organisation_id, draft.uuid), draft.file_key)


def draft_read_anew(*, draft: Draft, sheet: int, header_row: int | None, version: int) -> Draft:
    """Read the file of a draft from another sheet or header row, and guess its columns anew.

    Raises TableError where the file cannot be read so, DraftChangedError when somebody was
    quicker; nothing is changed then.
    """
    source = draft_file(draft)
    now = SheetLayout.from_json(draft.choices.get("layout")) or find_layout(source)
    is_other = sheet != now.sheet or header_row is None
    layout = sheet_layout(source, sheet) if is_other else layout_at(source, sheet, header_row)
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
    """Return how the rows of a pairs draft are read."""
    return PairChoices.from_json(draft.choices)


def pairs_preview(draft: Draft) -> PairsPreview:
    """Return how the rows of a pairs draft fit its cohort."""
    return check_pairs(draft_table(draft), people_of(draft.cohort), read_pair_choices(draft))


def draft_update(*, draft: Draft, choices: dict[str, Any], version: int) -> Draft:
    """Store new choices if nobody stored others since ``version``.

    Raises DraftChangedError otherwise; nothing is changed then.
    """
    if choices == draft.choices and version == draft.version:
        return draft  # nothing that Undo would take back
    undo = with_step(draft.undo, step_back(draft.choices, choices))
    _store(draft, version, choices=choices, undo=undo)
    return draft


def draft_undo(*, draft: Draft, version: int) -> Draft:
    """Take the last change of the choices back; raise Refusal where there is none."""
    if not draft.undo:
        raise Refusal("There is nothing to undo.")
    *rest, last = draft.undo
    with transaction.atomic():
        _store(draft, version, choices=taken_back(draft.choices, last), undo=rest)
        _describe(draft, draft_table(draft))
    return draft


def _store(draft: Draft, version: int, **values: Any) -> None:
    # Of the version that was read, too: what Undo takes back is told from the choices of then.
    same = Draft.objects.filter(pk=draft.pk, version=version)
    if version != draft.version or not same.update(**values, version=version + 1):
        raise DraftChangedError("Somebody else changed this import meanwhile.")
    draft.refresh_from_db()


def draft_discard(*, user: User, draft: Draft) -> None:
    """Remove a draft and its file."""
    with transaction.atomic():
        audit(user, "discarded", draft)
        draft.delete()


def drafts_expire() -> int:
    """Remove uploads that nobody imported or discarded in time; return how many.

    An upload holds all columns of the file, those too that will be ignored, so it must not stay
    forgotten. This runs once a day: what would be too old tomorrow goes today.
    """
    oldest = timezone.now() - timedelta(days=Draft.KEPT_DAYS - 1)
    return sum(_expire(draft) for draft in Draft.objects.filter(created_at__lt=oldest))


@transaction.atomic
def _expire(draft: Draft) -> bool:
    removed, _ = Draft.objects.filter(pk=draft.pk).delete()
    if removed:  # else somebody imported or discarded it just now
        audit(None, "expired", draft, organisation=draft.organisation, rows=draft.n_rows)
    return bool(removed)
