"""Access rules of views. A role includes the rights of the roles below it."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpResponseBase
from django.utils.translation import gettext as _

from webapp.accounts.models import Role
from webapp.accounts.requests import SignedInRequest
from webapp.common.sessions import NAMES_HIDDEN

View = Callable[..., HttpResponseBase]


def role_required(role: Role) -> Callable[[View], View]:
    """Allow a view to users of the given role or a higher one; others get 403."""

    def decorate(view: View) -> View:
        @wraps(view)
        def wrapped(request: SignedInRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.has_role(role):
                raise PermissionDenied(
                    _("This needs the role %(role)s.") % {"role": role.label.lower()}
                )
            request.user.hides_names = bool(request.session.get(NAMES_HIDDEN))
            return view(request, *args, **kwargs)

        return wrapped

    return decorate


viewer_required = role_required(Role.VIEWER)
staff_required = role_required(Role.STAFF)
administrator_required = role_required(Role.ADMINISTRATOR)


def operator_required(view: View) -> View:
    """Allow a view to operators of the installation; others get 403, administrators too."""

    @wraps(view)
    def wrapped(request: SignedInRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_operator:
            raise PermissionDenied(_("Only an operator of the installation can do this."))
        return view(request, *args, **kwargs)

    return wrapped
