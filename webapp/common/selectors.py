"""Reading objects inside the walls of an organisation."""

from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import models
from django.http import Http404

from webapp.accounts.models import User

M = TypeVar("M", bound=models.Model)


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
