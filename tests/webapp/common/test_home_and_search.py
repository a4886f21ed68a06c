"""Home, search and toasts through the hooks that applications use."""

from collections.abc import Callable, Iterable

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from tests.webapp.roles import Page, Part
from webapp.accounts.models import User
from webapp.common import hooks
from webapp.common.selectors import owned_counts
from webapp.common.toasts import Toast
from webapp.housing.models import BuildingList, Placement

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
    page = Page(client_of(bob).get("/search/?q=S-1"))
    assert page.has("link", "S-1001")
    assert page.has("link", "S-1002")


def test_it_finds_nothing_of_another_organisation(
    client_of: ClientOf, mallory: User, search_source: None
) -> None:
    page = Page(client_of(mallory).get("/search/?q=S-1002"))
    assert "/students/" not in page.source
    assert page.says("Nothing has")


def test_a_query_is_escaped(client_of: ClientOf, bob: User) -> None:
    page = Page(client_of(bob).get("/search/?q=%3Cscript%3Ealert(1)%3C/script%3E"))
    assert page.says("<script>alert(1)</script>")
    assert "<script>alert" not in page.source


def test_next_steps_come_in_order_and_one_button_is_green(
    client_of: ClientOf, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [
        hooks.NextStep("Second", "later", "/b/", "Go on", order=20),
        hooks.NextStep("First", "now", "/a/", "Begin", order=10),
    ]
    monkeypatch.setattr(hooks._registry, "next_steps", [lambda user: steps])
    page = Page(client_of(bob).get("/"))
    assert page.text.index("First") < page.text.index("Second")
    assert page.source.count("button--primary") == 1


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
    page = Page(response)
    assert page.source.startswith("<p>row</p>")
    (toasts,) = page.element.xpath("//*[@hx-swap-oob='beforeend:#toasts']")
    assert Part(toasts).says("locked <together>")
    assert Part(toasts).one("form").address == "/undo/1/"


def test_errors_are_announced_assertively() -> None:
    assert Toast("x", is_error=True).region == "assertive"
    assert Toast("x").region == "polite"


def test_help_says_what_numbers_do_not_mean(client_of: ClientOf, alice: User) -> None:
    page = Page(client_of(alice).get("/help/"))
    assert page.has("listitem", "not the chance that they get along")


def test_lines_of_the_rail_with_one_name_tell_their_section(client_of: ClientOf, bob: User) -> None:
    """Both read "Models" where the rail is only icons."""
    bob.organisation.department = ""
    bob.organisation.save()
    page = Page(client_of(bob).get("/help/"))
    titles = [link.element.get("title") for link in page.one("navigation", "Main").every("link")]
    assert "Housing: Models" in titles
    assert "Images: Models" in titles
    assert "Home" in titles
    (organisation,) = page.element.find_class("rail__organisation")
    assert organisation.find("span") is None


@pytest.mark.every_database
def test_objects_are_counted_for_each_organisation_apart(
    bob: User, mallory: User, campus: BuildingList
) -> None:
    """The query is compiled once, for whoever comes first."""
    for _ in range(2):
        assert owned_counts(bob, [BuildingList, Placement]) == {BuildingList: 1, Placement: 0}
        assert owned_counts(mallory, [Placement, BuildingList]) == {BuildingList: 0, Placement: 0}
        assert owned_counts(User(), [BuildingList]) == {BuildingList: 0}
    BuildingList.objects.create(organisation=mallory.organisation, name="Theirs")
    assert owned_counts(mallory, [BuildingList, Placement]) == {BuildingList: 1, Placement: 0}
    assert owned_counts(bob, []) == {}
