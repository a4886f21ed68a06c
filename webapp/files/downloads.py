"""Files that a page sends, or the sentence why there is none."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from webapp.common.errors import Refusal
from webapp.common.toasts import toast
from webapp.files.file_headers import as_attachment


def download(
    request: HttpRequest, make: Callable[[], tuple[bytes, str]], filename: str, *, back: str
) -> HttpResponseBase:
    """Return a file as a download; if it is refused, say why on the page at ``back``.

    ``make`` returns the bytes and their content type, or raises Refusal.
    """
    try:
        data, kind = make()
    except Refusal as problem:
        toast(request, str(problem), error=True)
        return redirect(back)
    return as_attachment(HttpResponse(data, content_type=kind), filename)
