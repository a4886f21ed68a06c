"""From a checked draft to a cohort or its past pairs: all or nothing."""

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from engine.tabular.answers import read_answers
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Draft, PairsOrigin
from webapp.cohorts.services.cohorts import (
    CohortError,
    check_name,
    cohort_create,
    cohort_set_pairs,
    cohort_set_rooms,
)
from webapp.cohorts.services.drafts import DraftChangedError, draft_preview, pairs_preview
from webapp.cohorts.services.recipes import recipe_keep


def draft_import(*, user: User, draft: Draft, name: str, version: int) -> Cohort:
    """Turn a checked draft into a cohort: all students or none.

    Raises
    ------
    CohortError
        If problems remain or the name is taken; nothing was changed.
    DraftChangedError
        If somebody changed or imported the draft meanwhile.
    """
    name = check_name(name)
    preview = draft_preview(draft)
    if preview.errors:
        raise CohortError(
            _("%(sentence)s Nothing was imported.") % {"sentence": preview.errors[0].sentence}
        )
    try:
        with transaction.atomic():
            claimed, _rest = Draft.objects.filter(pk=draft.pk, version=version).delete()
            if not claimed:
                raise DraftChangedError(_("This import was changed or finished by somebody else."))
            cohort = cohort_create(
                user=user, name=name, filename=draft.filename, answers=read_answers(preview)
            )
            recipe_keep(preview=preview, cohort=cohort)
            audit(
                user,
                "imported",
                cohort,
                students=cohort.n_students,
                questions=len(cohort.questions),
            )
    except IntegrityError as error:
        raise CohortError(
            _("There is already a cohort called “%(name)s”.") % {"name": name}
        ) from error
    return cohort


def pairs_import(*, user: User, draft: Draft, version: int) -> Cohort:
    """Turn a checked draft of pairs into the past pairs of its cohort: all or none.

    Raises CohortError while problems remain, DraftChangedError if the draft changed meanwhile.
    """
    cohort, preview = draft.own_cohort, pairs_preview(draft)
    if preview.errors:
        raise CohortError(
            _("%(sentence)s Nothing was imported.") % {"sentence": preview.errors[0].sentence}
        )
    if not preview.can_import:
        raise CohortError(
            _("%(why_nothing)s Nothing was imported.") % {"why_nothing": preview.why_nothing}
        )
    with transaction.atomic():
        claimed, _rest = Draft.objects.filter(pk=draft.pk, version=version).delete()
        if not claimed:
            raise DraftChangedError(_("This import was changed or finished by somebody else."))
        cohort_set_pairs(
            user=user,
            cohort=cohort,
            pairs=[(min(pair), max(pair)) for pair in preview.pairs],
            origin=PairsOrigin.IMPORTED,
            note=_("From %(file)s") % {"file": draft.filename},
            left_over=preview.n_left_over,
        )
        cohort_set_rooms(cohort=cohort, rooms=preview.shared_rooms)
    return cohort
