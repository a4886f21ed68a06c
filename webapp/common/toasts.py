"""Toasts: short reports with Undo. They travel as Django messages, so they survive a redirect."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from django.contrib import messages
from django.http import HttpRequest
from django.template.loader import render_to_string

from webapp.common import hooks
from webapp.common.errors import Refusal


@dataclass(frozen=True, slots=True)
class Toast:
    """One sentence, and the address of a POST that undoes its action."""

    text: str
    undo_url: str = ""
    icon: str = ""
    is_error: bool = False

    @property
    def region(self) -> str:
        """Return the live region that announces it."""
        return "assertive" if self.is_error else "polite"


def toast(
    request: HttpRequest, text: str, *, undo_url: str = "", icon: str = "", error: bool = False
) -> None:
    """Show a sentence on the answer: a page, the page after a redirect, an htmx fragment.

    ``undo_url`` gets a POST when the reader chooses Undo; it should answer with a redirect back.
    """
    value = Toast(text=str(text), undo_url=undo_url, icon=icon, is_error=error)
    level = messages.ERROR if error else messages.INFO
    messages.add_message(request, level, json.dumps(asdict(value)), extra_tags="toast")


def attempt(
    request: HttpRequest, act: Callable[[], object], done: str = "", *, icon: str = ""
) -> bool:
    """Run an action and show that it was done, or in one sentence why not; return True if done."""
    try:
        act()
    except Refusal as refusal:
        toast(request, str(refusal), error=True)
        return False
    if done:
        toast(request, done, icon=icon)
    return True


def pending_toasts(request: HttpRequest) -> list[Toast]:
    """Return the toasts that wait for this reader, and remove them.

    Names of students are added here and not before: a waiting toast is stored with ids alone.
    """
    found = []
    for message in messages.get_messages(request):
        if "toast" in (message.extra_tags or ""):
            found.append(Toast(**json.loads(message.message)))
        else:
            found.append(Toast(text=str(message), is_error=message.level >= messages.ERROR))
    return [replace(one, text=hooks.in_names(request, one.text)) for one in found]


def render_fragment(request: HttpRequest) -> str:
    """Return waiting toasts as an out-of-band fragment for htmx; '' when there are none."""
    found = pending_toasts(request)
    return render_to_string("common/_toasts_oob.html", {"toasts": found}, request) if found else ""
