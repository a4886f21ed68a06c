"""Exchange of a personal link for a cookie at the first visit.

Anybody with a personal link can act for its owner, and addresses end up in logs of proxies, in
browser histories and in Referer headers. So the first visit exchanges the token of the address for
a cookie and redirects to an address without it. A browser without cookies stays at the address of
the link; all our logs mask it (:mod:`webapp.monitoring.masking`).
"""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

TRIED = "cookies"  # parameter of a repeated request that checks whether cookies are stored


@dataclass(frozen=True, slots=True)
class PersonalLink:
    """A personal link of one visitor, and the address that takes its place.

    Parameters
    ----------
    cookie : name of the cookie.
    token : the secret, which the address of the link holds and then the cookie.
    address : of the link, with the token.
    there : address without the token; the cookie is sent to it and below it.
    site : beginning of all addresses of links, for the check whether cookies are stored.
    valid_for : time until the cookie ends.
    """

    cookie: str
    token: str
    address: str
    there: str
    site: str
    valid_for: timedelta

    def enter(self, request: HttpRequest, **more: str) -> HttpResponse | None:
        """Redirect to the address without the token; None if the browser takes no cookies.

        ``more`` are parameters added to those of the request.
        """
        query = request.GET.copy()
        query.update(more)
        was_tried = query.pop(TRIED, None) is not None
        if request.COOKIES:
            response = HttpResponseRedirect(
                f"{self.there}?{query.urlencode()}" if query else self.there
            )
            _set(response, self.cookie, self.token, path=self.there, max_age=self.valid_for)
            return response
        if was_tried:
            return None
        query[TRIED] = "1"
        response = HttpResponseRedirect(f"{self.address}?{query.urlencode()}")
        _set(response, TRIED, "1", path=self.site, max_age=None)
        return response


def _set(
    response: HttpResponse, name: str, value: str, *, path: str, max_age: timedelta | None
) -> None:
    response.set_cookie(
        name,
        value,
        max_age=max_age,
        path=path,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
