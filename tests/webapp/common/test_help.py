"""Every page links to a section of Help that exists, and Help covers every line of the rail."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.common import hooks
from webapp.common.context_processors import help_section_of

ClientOf = Callable[[User], Client]

TEMPLATES = Path(settings.BASE_DIR, "templates")
NAMED = re.compile(r"{% block help %}([\w-]+){% endblock %}")


@pytest.fixture
def sections(client_of: ClientOf, carol: User) -> set[str]:
    page = Page(client_of(carol).get("/help/"))
    return set(page.element.xpath("//section/@id"))


def test_help_covers_every_line_of_the_rail(sections: set[str]) -> None:
    lines = [
        item.help_section
        for item in hooks.navigation_items()
        if item.url_name not in ("common:home", "common:help")
    ]
    assert len(lines) > 12
    assert set(lines) <= sections


def test_every_section_that_a_template_names_exists(sections: set[str]) -> None:
    named = {
        (path.name, section)
        for path in TEMPLATES.rglob("*.html")
        for section in re.findall(
            r"{% block help %}([\w-]+){% endblock %}", path.read_text("utf-8")
        )
    }
    assert len(named) >= 6
    assert not [one for one in named if one[1] not in sections]


def test_every_line_of_the_contents_leads_to_a_section(
    client_of: ClientOf, carol: User, sections: set[str]
) -> None:
    page = Page(client_of(carol).get("/help/"))
    links = [one.address for one in page.every("link")]
    named = {one[1:] for one in links if one.startswith("#")} - {"main"}
    assert len(named) > 25
    assert named <= sections


@pytest.mark.parametrize(
    ("address", "section"),
    [
        ("/", "start"),
        ("/help/", "start"),
        ("/cohorts/", "housing-cohorts"),
        ("/cohorts/import/", "housing-cohorts"),
        ("/buildings/", "housing-buildings"),
        ("/buildings/new/", "housing-buildings"),
        ("/models/", "housing-models"),
        ("/placements/", "housing-placements"),
        ("/letters/", "housing-letters"),
        ("/questionnaires/", "housing-questionnaires"),
        ("/image-sets/", "images-image-sets"),
        ("/image-models/", "images-models"),
        ("/predictions/", "images-predictions"),
        ("/jobs/", "workspace-jobs"),
        ("/accounts/people/", "workspace-people"),
        ("/accounts/settings/", "workspace-people"),
    ],
)
def test_a_page_links_to_its_section(
    client_of: ClientOf, carol: User, sections: set[str], address: str, section: str
) -> None:
    page = Page(client_of(carol).get(address))
    links = [one.address for one in page.every("link")]
    assert [one[len("/help/#") :] for one in links if one.startswith("/help/#")] == [section]
    assert section in sections


def test_the_longest_path_decides() -> None:
    assert help_section_of("/image-models/7/") == "images-models"
    assert help_section_of("/unknown/") == "start"
