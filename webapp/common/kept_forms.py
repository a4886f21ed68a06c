"""Text typed into a form after the session ended, kept until the person signs in again.

A marked view answers GET with its form. When a POST to it comes without a session, or with the
token of an older one, its fields are kept in the visitor's session, and the visitor is led back
to the form, which shows them. They are encrypted where the installation sets a key.
"""

import json
import time
from collections.abc import Callable
from typing import Any, TypeVar

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext_lazy as _

from webapp.common.limits import count_up
from webapp.encryption.fields import seal, unseal

MAX_LETTERS = 100_000  # of all fields together; a longer form is not kept
KEPT_SECONDS = 3_600
# Forms kept within an hour: anybody without a session can send them. An office shares one address.
MOST_OF_ADDRESS, MOST_OF_ALL = 100, 2_000
EXPIRED = _(
    "Your session had ended, so nothing was saved yet. Check what you typed and send it again."
)
_KEY = "kept_form"
_MARK = "keeps_typed"
_NEVER = {"csrfmiddlewaretoken", "password", "secret"}
V = TypeVar("V", bound=Callable[..., Any])


def keeps_typed(view: V) -> V:
    """Mark a view whose typed fields are kept when a session ends."""
    setattr(view, _MARK, True)
    return view


def is_marked(view: Callable[..., Any]) -> bool:
    """Return True if the fields sent to a view are kept when a session ends."""
    return bool(getattr(view, _MARK, False))


def keep(request: HttpRequest) -> bool:
    """Keep the fields of a POST for its address; return False if they are too long or too many."""
    fields = [
        (name, value)
        for name, values in request.POST.lists()
        if name not in _NEVER
        for value in values
    ]
    if sum(len(name) + len(value) for name, value in fields) > MAX_LETTERS:
        return False
    sender = request.META.get("REMOTE_ADDR", "")
    if count_up("kept-forms", sender, window=KEPT_SECONDS) > MOST_OF_ADDRESS:
        return False
    if count_up("kept-forms", "all", window=KEPT_SECONDS) > MOST_OF_ALL:
        return False
    sealed = seal(json.dumps(fields))
    request.session[_KEY] = {"path": request.path, "at": time.time(), "fields": sealed}
    return True


def take(request: HttpRequest) -> QueryDict | None:
    """Return the fields kept for this address, once; None if there are none, or after an hour."""
    found = _kept(request)
    if found is not None:
        del request.session[_KEY]
    return found


def sent_fields(request: HttpRequest) -> QueryDict | None:
    """Return the fields of a POST, or those kept for this address, which stay; None for neither."""
    return request.POST if request.method == "POST" else _kept(request)


def _kept(request: HttpRequest) -> QueryDict | None:
    kept = request.session.get(_KEY)
    if not isinstance(kept, dict) or kept["path"] != request.path:
        return None
    if time.time() - kept["at"] > KEPT_SECONDS:
        return None
    typed = QueryDict(mutable=True)
    for name, value in json.loads(unseal(kept["fields"])):
        typed.appendlist(name, value)
    return typed
