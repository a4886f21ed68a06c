"""Queries limited to one organisation."""

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import connections, models, router
from django.db.models.functions import Coalesce
from django.http import Http404
from django.utils.translation import gettext as _

from webapp.accounts.models import Organisation, User

M = TypeVar("M", bound=models.Model)
_ANY_OWNER = -987_654_321  # key of no organisation


def owned_by(model: type[M] | models.QuerySet[M], user: User) -> models.QuerySet[M]:
    """Return the objects of the user's organisation only."""
    queryset = model if isinstance(model, models.QuerySet) else model._default_manager.all()
    return queryset.filter(organisation_id=user.organisation_id)


def get_owned_or_404(model: type[M] | models.QuerySet[M], user: User, pk: Any) -> M:
    """Return one object of the user's organisation.

    An object of another organisation answers exactly like one that does not exist.

    Raises
    ------
    Http404
        If there is no such object in the organisation.
    """
    return get_or_404(owned_by(model, user), pk)


def get_or_404(objects: models.QuerySet[M], pk: Any) -> M:
    """Return the object of this key; raise Http404 if there is none or the key is invalid."""
    try:
        return objects.get(pk=pk)
    except (models.ObjectDoesNotExist, ValidationError, ValueError, TypeError) as error:
        raise Http404(_("There is no such page.")) from error


def get_or_none(objects: models.QuerySet[M], pk: Any) -> M | None:
    """Return the object of this key; None if there is none or the key is invalid."""
    try:
        return get_or_404(objects, pk)
    except Http404:
        return None


def owned_counts(
    user: User, models_counted: Iterable[type[models.Model]]
) -> dict[type[models.Model], int]:
    """Return the number of objects of each model in the user's organisation, by one query."""
    counted = tuple(dict.fromkeys(models_counted))
    if not counted:
        return {}
    alias = router.db_for_read(Organisation)
    sql, values = _counting_query(counted, alias)
    owner = user.organisation_id or 0
    with connections[alias].cursor() as cursor:
        cursor.execute(sql, [owner if value == _ANY_OWNER else value for value in values])
        row = cursor.fetchone() or [0] * len(counted)
    return dict(zip(counted, row, strict=True))


@cache
def _counting_query(
    counted: tuple[type[models.Model], ...], alias: str
) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL of counts and its values, in which `_ANY_OWNER` is the organisation.

    It is on every page of staff, and Django took a tenth of such a page to compile it.
    """
    numbers = [_number(model) for model in counted]
    organisation = Organisation.objects.using(alias).filter(pk=_ANY_OWNER).order_by()
    sql, values = organisation.values_list(*numbers).query.get_compiler(alias).as_sql()
    return sql, tuple(values)


@cache
def _number(model: type[models.Model]) -> models.Expression:
    own = model._default_manager.filter(organisation=models.OuterRef("pk")).order_by()
    count = own.values("organisation").annotate(number=models.Count("pk")).values("number")
    return Coalesce(models.Subquery(count), 0)
