"""The first visitor of a new process waits for nothing that could be done before."""

import pytest
from django.template import Template, engines
from django.test import Client
from django.urls import clear_url_caches
from django.urls.resolvers import URLResolver

from webapp.accounts.models import User
from webapp.common.first_visit import prepare_for_first_visit

pytestmark = pytest.mark.django_db


def test_a_first_page_compiles_no_template_and_reads_no_address(
    client: Client, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines["django"].engine.template_loaders[0].reset()
    clear_url_caches()
    prepare_for_first_visit()
    done: list[str] = []
    compile_nodes, populate = Template.compile_nodelist, URLResolver._populate

    def compiled(template: Template) -> object:
        done.append(f"template {template.name}")
        return compile_nodes(template)

    def populated(resolver: URLResolver) -> None:
        done.append(f"addresses {resolver}")
        populate(resolver)

    monkeypatch.setattr(Template, "compile_nodelist", compiled)
    monkeypatch.setattr(URLResolver, "_populate", populated)
    client.force_login(bob)
    for page in ("/", "/placements/", "/image-sets/", "/predictions/"):
        assert client.get(page).status_code == 200
    assert not [what for what in done if what.startswith("addresses") or "django" not in what]
