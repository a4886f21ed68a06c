"""Types of the requests that views get, with what the middleware adds to them."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from webapp.accounts.models import User


class HtmxRequest(HttpRequest):
    """Request of anybody, after htmx's middleware."""

    htmx: HtmxDetails


class SignedInRequest(HtmxRequest):
    """Request of a person who signed in.

    The middleware turns everybody else away first; only views marked ``login_not_required`` get
    requests without a person.
    """

    user: User
