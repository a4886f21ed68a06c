"""Acts of forms: the page that an act returns to, and old addresses that took many acts.

A form sends the field ``back``: the address of its page with all filters, or these filters alone.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme


def page_of(back: str, path: str) -> str:
    """Return the address that a form names, if it is the page of a path, with its filters.

    Any other address gives "".
    """
    is_ours = url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return back if is_ours and urlsplit(back).path == path else ""


def filters_of(back: str) -> dict[str, str]:
    """Return the filters of the page that a form was on."""
    query = back.partition("#")[0].partition("?")[2] if back.startswith("/") else back
    sent = QueryDict(query)
    return {name: str(value) for name, value in sent.items()}


def passed_on(
    request: HttpRequest, addresses: Mapping[str, str], *parameters: object, field: str = "act"
) -> HttpResponse | None:
    """Return a redirect that repeats a POST at the address of its act; None for other acts.

    Pages opened before an upgrade, and programs that fill forms, still send the field of the act.
    """
    name = addresses.get(request.POST.get(field, ""))
    return redirect(name, *parameters, preserve_request=True) if name else None
