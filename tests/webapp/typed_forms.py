"""Checks of a refused form: its status, every typed value, and the error beside its field."""

from collections.abc import Callable
from typing import Any

from django.test import Client
from django.urls import reverse
from lxml import html

from tests.webapp.conftest import PASSWORD
from webapp.accounts.models import User

EXPIRED = "Your session had ended, so nothing was saved yet."


def field_values(page: Any, name: str) -> list[str]:
    """Values that a page's controls of a name would send, as a browser would."""
    found: list[str] = []
    for control in html.fromstring(page.content).xpath(f'//*[@name="{name}"]'):
        if control.tag == "textarea":
            found.append((control.text or "").removeprefix("\n"))
        elif control.tag == "select":
            options = control.xpath(".//option[@selected]")
            found += [option.get("value", option.text) for option in options]
        elif control.get("type") not in ("radio", "checkbox") or "checked" in control.attrib:
            default = "on" if control.get("type") in ("radio", "checkbox") else ""
            found.append(control.get("value", default))
    return found


def errors_beside(page: Any, name: str) -> str:
    """Text of the elements that describe a field to a screen reader."""
    tree = html.fromstring(page.content)
    described = tree.xpath(f'//*[@name="{name}"]/@aria-describedby')
    described += tree.xpath(f'//fieldset[.//*[@name="{name}"]]/@aria-describedby')
    ids = [one for found in described for one in found.split()]
    texts = [tree.get_element_by_id(one).text_content() for one in ids]
    return " ".join(" ".join(texts).split())


def check_kept(page: Any, typed: dict[str, Any]) -> None:
    """Check that every typed value stands in its field."""
    for name, value in typed.items():
        values = value if isinstance(value, list) else [value]
        shown = [one.replace("\r\n", "\n") for one in field_values(page, name)]
        for one in values:
            assert str(one) in shown, f"{name}: {one!r} is not in {shown}"


def check_refused(page: Any, typed: dict[str, Any], *, field: str, error: str) -> None:
    """Check the status, that everything typed is there, and that the error is beside its field."""
    assert page.status_code == 422, page.status_code
    check_kept(page, typed)
    if field:
        assert error in errors_beside(page, field), errors_beside(page, field)
    else:
        notices = html.fromstring(page.content).xpath('//*[@role="alert"]')
        assert any(error in " ".join(one.text_content().split()) for one in notices)


def check_outlives_a_session(
    client_of: Callable[[User], Client], user: User, url: str, typed: dict[str, Any]
) -> Any:
    """Check that a form sent after the session ended is there once its person signed in again."""
    client = client_of(user)
    client.logout()
    lost = client.post(url, typed)
    assert lost.status_code == 302
    assert "kept=1" in lost.url
    signed_in = {"username": user.username, "password": PASSWORD, "next": url}
    page = client.post(reverse("accounts:sign-in"), signed_in, follow=True)
    check_refused(page, typed, field="", error=EXPIRED)
    return client
