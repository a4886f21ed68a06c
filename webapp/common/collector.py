"""The garbage collector as a web process wants it: no page waits for a walk over everything."""

import gc

# Objects that a page may make before the young ones are looked at. A page of rooms makes some
# 50,000, nearly none in cycles; by default the collector looks at every 700.
YOUNG_OBJECTS = 10_000


def spare_what_stays() -> None:
    """Leave out of every collection what is loaded by now: addresses, templates, the engine.

    A full collection of a process walks over some 250,000 objects of Django and of the engine,
    which takes .2 s and frees nothing; a page that happens to trigger one waits for it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
