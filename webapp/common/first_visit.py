"""What a process of the web server does once, before anybody visits it."""

from contextlib import suppress

from django.conf import settings
from django.template.loader import get_template
from django.urls import NoReverseMatch, get_resolver, reverse


def prepare_for_first_visit() -> None:
    """Read every page's code, its addresses and its templates, which are kept from then on.

    Without it the first look at a page takes 100 ms more, in each process again; all of this
    together takes half a second.
    """
    for namespace in get_resolver().namespace_dict:
        with suppress(NoReverseMatch):  # no page has this name, but to say so all are read
            reverse(f"{namespace}:")
    for folder in settings.TEMPLATES[0]["DIRS"]:
        for path in folder.rglob("*.html"):
            get_template(path.relative_to(folder).as_posix())
        for path in folder.rglob("*.jinja"):
            get_template(path.relative_to(folder).as_posix(), using="jinja2")
