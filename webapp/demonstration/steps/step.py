"""A step of the demonstration: what it prepares, from what, and how."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Model
from django.urls import reverse
from django.utils.translation import gettext

from webapp.accounts.models import Role, User
from webapp.common.errors import Refusal
from webapp.common.models import OrganisationOwned
from webapp.jobs.models import Job


class StepError(Refusal):
    """Error of a step that cannot begin or end, in one sentence."""


@dataclass(frozen=True, slots=True)
class Started:
    """Object that a step created, and the job that computes it, if any."""

    target: Model
    job: Job | None = None


def finish_at_once(user: User, target: Any) -> bool:
    """Return True: nothing is left to do once the job has succeeded."""
    return True


@dataclass(frozen=True, slots=True)
class Step:
    """One result of the demonstration and the services that prepare it.

    Parameters
    ----------
    key : str
        Stored name.
    title : str
        Noun phrase for lists: "A learned model".
    doing : str
        Present participle for the sentence on Home: "Learning which answers matter".
    model : type
        Class of the object.
    url_name : str
        Page of the object, which takes its key only.
    start : function of the user and the objects of ``needs``, by key
        Creates the object and starts its job; called in one transaction with the stored state.
    discard : function of the user and the object
        Removes what a failed attempt left, before the next attempt.
    needs : tuple of str
        Steps that must be ready before.
    finish : function of the user and the object
        Called when the job has succeeded, or at once without a job; returns False to be called
        again.
    """

    key: str
    title: str
    doing: str
    model: type[OrganisationOwned]
    url_name: str
    start: Callable[[User, Mapping[str, Any]], Started]
    discard: Callable[[User, Any], None]
    needs: tuple[str, ...] = ()
    finish: Callable[[User, Any], bool] = finish_at_once

    def find(self, organisation_id: int, target: str) -> Any:
        """Return the object of a stored key; None if somebody removed it."""
        if not target:
            return None
        objects = self.model._default_manager.filter(organisation_id=organisation_id)
        return objects.filter(pk=target).first()

    def url(self, target: str) -> str:
        """Return the address of the object's page."""
        return reverse(self.url_name, args=[target])


def named(model: type[Any], user: User, name: str) -> Any:
    """Return the object of this name in the user's organisation; None if there is none."""
    return model._default_manager.filter(organisation_id=user.organisation_id, name=name).first()


def required(model: type[Any], user: User, name: str) -> Any:
    """Return the object of this name; raise StepError if somebody removed or renamed it."""
    found = named(model, user, name)
    if found is None:
        raise StepError(
            gettext("“%(name)s” of the demonstration was removed or renamed.") % {"name": name}
        )
    return found


def administrator_of(user: User) -> User:
    """Return an administrator of the user's organisation; the user if there is none."""
    people = User.objects.filter(
        organisation_id=user.organisation_id, role=Role.ADMINISTRATOR, is_active=True
    )
    return people.order_by("pk").first() or user
