"""Reading objects inside the walls of an organisation."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Coalesce
from django.http import Http404

from webapp.accounts.models import Organisation, User

M = TypeVar("M", bound=models.Model)
_counted: list[type[models.Model]] = []


def owned_by(model: type[M] | models.QuerySet[M], user: User) -> models.QuerySet[M]:
    """Return the objects of the user's organisation, and no others."""
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
    """Return the object of this key, or raise Http404, also for what can be no key at all."""
    try:
        return objects.get(pk=pk)
    except (models.ObjectDoesNotExist, ValidationError, ValueError, TypeError) as error:
        raise Http404("There is no such page.") from error


def get_or_none(objects: models.QuerySet[M], pk: Any) -> M | None:
    """Return the object of this key, None where there is none, also for what can be no key."""
    try:
        return get_or_404(objects, pk)
    except Http404:
        return None


def counter_of(model: type[models.Model]) -> Callable[[User], int]:
    """Return a function that counts the objects of a user's organisation.

    The rail shows most of these numbers on every page: all that were asked for here are counted
    together, by one query, once in a request.
    """
    if model not in _counted:
        _counted.append(model)
    return lambda user: _counts(user)[model]


def _counts(user: User) -> dict[type[models.Model], int]:
    known: dict[type[models.Model], int] | None = getattr(user, "owned_counts", None)
    if known is None:
        numbers = [_number(model) for model in _counted]
        of_user = Organisation.objects.filter(pk=user.organisation_id).order_by()
        row = of_user.values_list(*numbers).first() or [0] * len(numbers)
        known = dict(zip(_counted, row, strict=True))
        user.owned_counts = known  # type: ignore[attr-defined]  # of this request's user alone
    return known


@cache
def _number(model: type[models.Model]) -> models.Expression:
    own = model._default_manager.filter(organisation=models.OuterRef("pk")).order_by()
    count = own.values("organisation").annotate(number=models.Count("pk")).values("number")
    return Coalesce(models.Subquery(count), 0)
