"""The garbage collector as a web process wants it: no page waits for a walk over everything."""

import gc


def spare_what_stays() -> None:
    """Leave out of every collection what is loaded by now: addresses, templates, the engine.

    A full collection of a process walks over some 250,000 objects of Django and of the engine,
    which takes .2 s and frees nothing; a page that happens to trigger one waits for it. What a
    process leaves alone it also shares with those that it forks.
    """
    gc.collect()
    gc.freeze()
