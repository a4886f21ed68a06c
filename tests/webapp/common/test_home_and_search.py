"""Home, search and toasts through the hooks that applications use."""

from collections.abc import Callable, Iterable

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from webapp.accounts.models import User
from webapp.common import hooks
from webapp.common.toasts import Toast

ClientOf = Callable[[User], Client]


@pytest.fixture
def search_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(user: User, query: str) -> Iterable[hooks.SearchHit]:
        names = ("S-1001", "S-1002") if user.organisation.name == "Northfield" else ()
        return [
            hooks.SearchHit(name, "student", f"/students/{name}/")
            for name in names
            if query in name
        ]

    monkeypatch.setattr(hooks._registry, "searches", [find])


def test_one_hit_opens_at_once(client_of: ClientOf, bob: User, search_source: None) -> None:
    assert client_of(bob).get("/search/?q=S-1002").url == "/students/S-1002/"


def test_several_hits_are_listed(client_of: ClientOf, bob: User, search_source: None) -> None:
    page = client_of(bob).get("/search/?q=S-1").content.decode()
    assert "S-1001" in page
    assert "S-1002" in page


def test_it_finds_nothing_of_another_organisation(
    client_of: ClientOf, mallory: User, search_source: None
) -> None:
    page = client_of(mallory).get("/search/?q=S-1002").content.decode()
    assert "/students/" not in page
    assert "Nothing has" in page


def test_a_query_is_escaped(client_of: ClientOf, bob: User) -> None:
    page = client_of(bob).get("/search/?q=%3Cscript%3Ealert(1)%3C/script%3E").content.decode()
    assert "<script>alert" not in page


def test_next_steps_come_in_order_and_one_button_is_green(
    client_of: ClientOf, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [
        hooks.NextStep("Second", "later", "/b/", "Go on", order=20),
        hooks.NextStep("First", "now", "/a/", "Begin", order=10),
    ]
    monkeypatch.setattr(hooks._registry, "next_steps", [lambda user: steps])
    page = client_of(bob).get("/").content.decode()
    assert page.index("First") < page.index("Second")
    assert page.count("button--primary") == 1


def test_an_htmx_answer_carries_waiting_toasts(bob: User) -> None:
    from django.contrib.messages.storage.fallback import FallbackStorage
    from django_htmx.middleware import HtmxMiddleware

    from webapp.common.middleware import ToastMiddleware
    from webapp.common.toasts import toast

    def view(request: HttpRequest) -> HttpResponse:
        toast(request, "S-1 + S-2 locked <together>.", undo_url="/undo/1/")
        return HttpResponse("<p>row</p>")

    request = RequestFactory().get("/", headers={"HX-Request": "true"})
    request.user = bob
    request.session = {}
    request._messages = FallbackStorage(request)
    response = HtmxMiddleware(ToastMiddleware(view))(request)
    page = response.content.decode()
    assert page.startswith("<p>row</p>")
    assert 'hx-swap-oob="beforeend:#toasts"' in page
    assert "locked &lt;together&gt;" in page
    assert 'action="/undo/1/"' in page


def test_errors_are_announced_assertively() -> None:
    assert Toast("x", is_error=True).region == "assertive"
    assert Toast("x").region == "polite"


def test_help_says_what_numbers_do_not_mean(client_of: ClientOf, alice: User) -> None:
    page = client_of(alice).get("/help/").content.decode()
    assert "not the chance that they get along" in page


def test_lines_of_the_rail_with_one_name_tell_their_section(client_of: ClientOf, bob: User) -> None:
    """Both read "Models" where the rail is only icons."""
    bob.organisation.department = ""
    bob.organisation.save()
    page = client_of(bob).get("/help/").content.decode()
    assert 'title="Housing: Models"' in page
    assert 'title="Images: Models"' in page
    assert 'title="Home"' in page
    assert "<span>" not in page.split("rail__organisation")[1].split("</div>")[0]
