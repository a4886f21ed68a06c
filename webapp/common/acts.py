"""Old addresses that took many acts by a field: each act has an address of its own now."""

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect


def passed_on(
    request: HttpRequest, addresses: Mapping[str, str], *parameters: object
) -> HttpResponse | None:
    """Return a redirect that repeats a POST at the address of its act; None for other acts.

    Pages opened before an upgrade, and programs that fill forms, still send the field ``act``.
    """
    name = addresses.get(request.POST.get("act", ""))
    return redirect(name, *parameters, preserve_request=True) if name else None
