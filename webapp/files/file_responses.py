"""Responses with stored files: right type, no sniffing, no scripts, ranges, and 304."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header, parse_etags
from django.utils.translation import gettext as _

from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.files import store
from webapp.files.contents import CHUNK_BYTES
from webapp.files.file_headers import guarded

_RANGE = re.compile(r"bytes=(\d*)-(\d*)$")


def file_response(
    request: HttpRequest,
    path: Path,
    *,
    media_type: str,
    etag: str,
    filename: str = "",
    attachment: bool = False,
    encoding: str = "",
    fresh: bool = False,
) -> HttpResponseBase:
    """Return a response with a file, one range of it, or 304 if the browser has it already.

    Call it after the permission check: it knows nothing of rights. Browsers must ask again each
    time (``no-cache``), so that a right withdrawn is withdrawn at once. ``fresh`` is
    for rewritten files.

    Raises
    ------
    Http404
        If the file is absent.
    """
    try:
        file = store.get(path, fresh=fresh).open("rb")
    except OSError as error:
        if store.is_fault(error):
            raise
        raise Http404(_("This file is no longer stored.")) from error
    size = path.stat().st_size
    tag = f'"{etag}"'
    if tag in parse_etags(request.headers.get("If-None-Match", "")):
        file.close()
        response: HttpResponseBase = HttpResponse(status=304)
    else:
        response = _body(request, file, size, tag)
        response["Content-Type"] = media_type
        response["Accept-Ranges"] = "bytes"
        if encoding and response.status_code == 200:
            response["Content-Encoding"] = encoding
    if filename and (disposition := content_disposition_header(attachment, filename)):
        response["Content-Disposition"] = disposition
    response["ETag"] = tag
    return guarded(response)


def exported(
    request: SignedInRequest, target: Model, response: HttpResponseBase, **details: Any
) -> HttpResponseBase:
    """Write the audit line of a download and return the response, before anything is sent.

    A response without a byte of the file (304, 416, HEAD) leaves none. Every range leaves one: a
    range without the first byte is a download too.
    """
    if request.method == "GET" and response.status_code in (200, 206):
        if "Content-Range" in response:
            details["range"] = response["Content-Range"]
        audit(request.user, "exported", target, **details)
    return response


def _body(request: HttpRequest, file: BinaryIO, size: int, tag: str) -> HttpResponseBase:
    wanted = request.headers.get("Range", "")
    condition = request.headers.get("If-Range")
    span = parse_range(wanted, size) if wanted and condition in {None, tag} else None
    if span == "unsatisfiable":
        file.close()
        refusal = HttpResponse(status=416)
        refusal["Content-Range"] = f"bytes */{size}"
        return refusal
    first, last = span if isinstance(span, tuple) else (0, size - 1)
    response = StreamingHttpResponse(
        _pieces(file, first, last - first + 1), status=206 if isinstance(span, tuple) else 200
    )
    response["Content-Length"] = str(last - first + 1)
    if isinstance(span, tuple):
        response["Content-Range"] = f"bytes {first}-{last}/{size}"
    return response


def parse_range(header: str, size: int) -> tuple[int, int] | str | None:
    """Return first and last byte of a single range; None to send all (several, or nonsense)."""
    match = _RANGE.match(header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first_text, last_text = match.groups()
    if not first_text:
        length = int(last_text)
        return (max(0, size - length), size - 1) if length and size else "unsatisfiable"
    first = int(first_text)
    last = min(int(last_text), size - 1) if last_text else size - 1
    if first >= size:
        return "unsatisfiable"
    return (first, last) if first <= last else None


def _pieces(file: BinaryIO, first: int, length: int) -> Iterator[bytes]:
    with file:
        file.seek(first)
        while length > 0 and (piece := file.read(min(CHUNK_BYTES, length))):
            length -= len(piece)
            yield piece
