"""Security headers of every file that is sent, stored or generated."""

from django.http import HttpResponseBase
from django.utils.http import content_disposition_header

# If a browser ever opens a file as a page, the file can do nothing.
FILE_POLICY = "default-src 'none'; sandbox"


def guarded(response: HttpResponseBase) -> HttpResponseBase:
    """Add the headers: no sniffing, no scripts, and revalidation each time or no caching at all."""
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = FILE_POLICY
    # Without an ETag to revalidate, a copy in the browser would be useless.
    response["Cache-Control"] = f"private, {'no-cache' if 'ETag' in response else 'no-store'}"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    return response


def as_attachment(response: HttpResponseBase, filename: str) -> HttpResponseBase:
    """Turn a response into a guarded download."""
    response["Content-Disposition"] = content_disposition_header(True, filename)
    return guarded(response)


def plain_name(name: str, otherwise: str = "rooms") -> str:
    """Return a safe file name: letters and digits of ASCII, everything else as hyphens."""
    kept = "".join(c if c.isalnum() and c.isascii() else "-" for c in name)
    return kept.strip("-") or otherwise
