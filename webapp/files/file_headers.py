"""What every stored or made file carries when it is sent."""

from django.http import HttpResponseBase
from django.utils.http import content_disposition_header

# Should a browser ever be made to open a file as a page, it may do nothing there.
FILE_POLICY = "default-src 'none'; sandbox"


def guarded(response: HttpResponseBase) -> HttpResponseBase:
    """Add the headers: never sniffed, never run, asked for again each time or not kept at all."""
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = FILE_POLICY
    # Without a tag to ask again with, a copy in the browser would be of no use to anybody.
    response["Cache-Control"] = f"private, {'no-cache' if 'ETag' in response else 'no-store'}"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    return response


def as_attachment(response: HttpResponseBase, filename: str) -> HttpResponseBase:
    """Make a guarded download of a response."""
    response["Content-Disposition"] = content_disposition_header(True, filename)
    return guarded(response)


def plain_name(name: str, otherwise: str = "rooms") -> str:
    """Return a name for a file: letters and digits of ASCII, everything else as hyphens."""
    kept = "".join(c if c.isalnum() and c.isascii() else "-" for c in name)
    return kept.strip("-") or otherwise
