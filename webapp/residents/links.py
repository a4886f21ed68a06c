"""Personal links to a student's page: signed, expiring and revocable.

A link has the form of the links of questionnaires and the same place, so that the logs of this
product and of the proxies in front of it mask both. A browser exchanges it for a cookie at the
first visit and continues at an address that opens nothing.
"""

from datetime import timedelta

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.crypto import constant_time_compare, salted_hmac

from webapp.cohorts.models import Student
from webapp.identity.link_cookies import PersonalLink
from webapp.residents.models import MARK, ResidentPage

VALID_FOR = timedelta(days=400)  # a year, and the weeks before it
_PREFIX = "home-"


def page_of(student: Student) -> ResidentPage:
    """Return the page of a student; the first call makes it."""
    page, _ = ResidentPage.objects.get_or_create(student=student)
    return page


def link_to(student: Student) -> str:
    """Return the whole personal link of a student; "" if the installation has no address."""
    if not settings.PUBLIC_URL:
        return ""
    return f"{settings.PUBLIC_URL}{reverse('residents:enter', args=[token_of(page_of(student))])}"


def token_of(page: ResidentPage) -> str:
    """Return the token of a personal link."""
    return _signer().sign(f"{page.pk}.{page.nonce}")


def page_of_token(token: str) -> ResidentPage | None:
    """Return the page of a link; None if it is forged, expired or revoked."""
    try:
        text = _signer().unsign(token, max_age=VALID_FOR)
    except signing.BadSignature:
        return None
    key, _, nonce = text.partition(".")
    if not nonce.startswith(MARK) or not key.isdecimal():
        return None
    rows = ResidentPage.objects.select_related("student__cohort__organisation")
    found = rows.defer("student__answers").filter(pk=int(key)).first()
    if found is None or not constant_time_compare(found.nonce, nonce):
        return None
    return found


def handle_of(page: ResidentPage) -> str:
    """Return the name of a page in addresses; it opens nothing without the cookie."""
    text = f"{page.pk}.{page.nonce}"
    return salted_hmac("webapp.residents.links", text).hexdigest()[:16]


def visitor_of(request: HttpRequest, handle: str) -> ResidentPage | None:
    """Return the page whose link the browser stores for this address; None without one."""
    page = page_of_token(request.COOKIES.get(_PREFIX + handle, ""))
    if page is None or not constant_time_compare(handle_of(page), handle):
        return None
    return page


def enter(request: HttpRequest, page: ResidentPage) -> HttpResponse | None:
    """Redirect to the address without the token; None if the browser takes no cookies."""
    handle, token = handle_of(page), token_of(page)
    link = PersonalLink(
        cookie=_PREFIX + handle,
        token=token,
        address=reverse("residents:enter", args=[token]),
        there=reverse("residents:home", args=[handle]),
        site=reverse("surveys:enter"),
        valid_for=VALID_FOR,
    )
    return link.enter(request)


def _signer() -> signing.TimestampSigner:
    return signing.TimestampSigner(salt="webapp.residents.links", sep="~")
