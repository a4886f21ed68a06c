"""The garbage collector as a web process wants it: no page waits for a walk over everything."""

import gc
from importlib import import_module
from pathlib import Path

from django.conf import settings
from django.template.loader import get_template

# Objects that a page may make before the young ones are looked at. A page of rooms makes some
# 50,000, nearly none in cycles; by default the collector looks at every 700.
YOUNG_OBJECTS = 10_000


def spare_what_stays() -> None:
    """Load addresses and templates, and leave out of every collection what is loaded by now.

    Who looks at a page first in a process would wait for its templates. A full collection of a
    process walks over some 250,000 objects of Django and of the engine, which takes .2 s and
    frees nothing; a page that happens to trigger one waits for it.
    """
    import_module(settings.ROOT_URLCONF)
    for folder in settings.TEMPLATES[0]["DIRS"]:
        for path in sorted(Path(folder).rglob("*.html")):
            get_template(path.relative_to(folder).as_posix())
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
