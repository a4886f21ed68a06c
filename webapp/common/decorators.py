"""Who may call a view. A role includes the rights of the roles below it."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase

from webapp.accounts.models import Role

View = Callable[..., HttpResponseBase]


def role_required(role: Role) -> Callable[[View], View]:
    """Allow a view to users of the given role or a higher one; others get 403."""

    def decorate(view: View) -> View:
        @wraps(view)
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.has_role(role):
                raise PermissionDenied(f"This needs the role {role.label.lower()}.")
            return view(request, *args, **kwargs)

        return wrapped

    return decorate


viewer_required = role_required(Role.VIEWER)
staff_required = role_required(Role.STAFF)
administrator_required = role_required(Role.ADMINISTRATOR)
