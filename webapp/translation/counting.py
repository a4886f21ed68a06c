"""Counts with their nouns, in the language of the page: "1 pair", "1,058 pairs"."""

from functools import lru_cache
from typing import Any

from django.utils.translation import get_language, ngettext_lazy

from engine.tabular.words import counted as counted_in_english

# The nouns that pages count, by their English singular: one entry of the catalogue each.
NOUNS: dict[str, Any] = {
    "act": ngettext_lazy("%(count)s act", "%(count)s acts", "number"),
    "answer": ngettext_lazy("%(count)s answer", "%(count)s answers", "number"),
    "bed": ngettext_lazy("%(count)s bed", "%(count)s beds", "number"),
    "blank": ngettext_lazy("%(count)s blank", "%(count)s blanks", "number"),
    "change": ngettext_lazy("%(count)s change", "%(count)s changes", "number"),
    "choice": ngettext_lazy("%(count)s choice", "%(count)s choices", "number"),
    "choice of hall": ngettext_lazy(
        "%(count)s choice of hall", "%(count)s choices of hall", "number"
    ),
    "class": ngettext_lazy("%(count)s class", "%(count)s classes", "number"),
    "cohort": ngettext_lazy("%(count)s cohort", "%(count)s cohorts", "number"),
    "column": ngettext_lazy("%(count)s column", "%(count)s columns", "number"),
    "corrected object": ngettext_lazy(
        "%(count)s corrected object", "%(count)s corrected objects", "number"
    ),
    "correction": ngettext_lazy("%(count)s correction", "%(count)s corrections", "number"),
    "couple": ngettext_lazy("%(count)s couple", "%(count)s couples", "number"),
    "event": ngettext_lazy("%(count)s event", "%(count)s events", "number"),
    "extra bed": ngettext_lazy("%(count)s extra bed", "%(count)s extra beds", "number"),
    "good pair": ngettext_lazy("%(count)s good pair", "%(count)s good pairs", "number"),
    "group": ngettext_lazy("%(count)s group", "%(count)s groups", "number"),
    "host": ngettext_lazy("%(count)s host", "%(count)s hosts", "number"),
    "image": ngettext_lazy("%(count)s image", "%(count)s images", "number"),
    "job": ngettext_lazy("%(count)s job", "%(count)s jobs", "number"),
    "late answer": ngettext_lazy("%(count)s late answer", "%(count)s late answers", "number"),
    "letter": ngettext_lazy("%(count)s letter", "%(count)s letters", "number"),
    "mail": ngettext_lazy("%(count)s mail", "%(count)s mails", "number"),
    "mask": ngettext_lazy("%(count)s mask", "%(count)s masks", "number"),
    "minute": ngettext_lazy("%(count)s minute", "%(count)s minutes", "number"),
    "model": ngettext_lazy("%(count)s model", "%(count)s models", "number"),
    "more note": ngettext_lazy("%(count)s more note", "%(count)s more notes", "number"),
    "more problem": ngettext_lazy("%(count)s more problem", "%(count)s more problems", "number"),
    "mutual request": ngettext_lazy(
        "%(count)s mutual request", "%(count)s mutual requests", "number"
    ),
    "need": ngettext_lazy("%(count)s need", "%(count)s needs", "number"),
    "number": ngettext_lazy("%(count)s number", "%(count)s numbers", "number"),
    "object": ngettext_lazy("%(count)s object", "%(count)s objects", "number"),
    "offer": ngettext_lazy("%(count)s offer", "%(count)s offers", "number"),
    "older backup": ngettext_lazy("%(count)s older backup", "%(count)s older backups", "number"),
    "open bed": ngettext_lazy("%(count)s open bed", "%(count)s open beds", "number"),
    "open decision": ngettext_lazy("%(count)s open decision", "%(count)s open decisions", "number"),
    "open room": ngettext_lazy("%(count)s open room", "%(count)s open rooms", "number"),
    "other bed": ngettext_lazy("%(count)s other bed", "%(count)s other beds", "number"),
    "other student": ngettext_lazy("%(count)s other student", "%(count)s other students", "number"),
    "pair": ngettext_lazy("%(count)s pair", "%(count)s pairs", "number"),
    "participant": ngettext_lazy("%(count)s participant", "%(count)s participants", "number"),
    "past pair": ngettext_lazy("%(count)s past pair", "%(count)s past pairs", "number"),
    "person": ngettext_lazy("%(count)s person", "%(count)s people", "number"),
    "pixel": ngettext_lazy("%(count)s pixel", "%(count)s pixels", "number"),
    "placement": ngettext_lazy("%(count)s placement", "%(count)s placements", "number"),
    "plane": ngettext_lazy("%(count)s plane", "%(count)s planes", "number"),
    "published bed": ngettext_lazy("%(count)s published bed", "%(count)s published beds", "number"),
    "question": ngettext_lazy("%(count)s question", "%(count)s questions", "number"),
    "request": ngettext_lazy("%(count)s request", "%(count)s requests", "number"),
    "result": ngettext_lazy("%(count)s result", "%(count)s results", "number"),
    "room": ngettext_lazy("%(count)s room", "%(count)s rooms", "number"),
    "roommate request": ngettext_lazy(
        "%(count)s roommate request", "%(count)s roommate requests", "number"
    ),
    "row": ngettext_lazy("%(count)s row", "%(count)s rows", "number"),
    "rule": ngettext_lazy("%(count)s rule", "%(count)s rules", "number"),
    "section": ngettext_lazy("%(count)s section", "%(count)s sections", "number"),
    "set": ngettext_lazy("%(count)s set", "%(count)s sets", "number"),
    "shared room": ngettext_lazy("%(count)s shared room", "%(count)s shared rooms", "number"),
    "smaller question": ngettext_lazy(
        "%(count)s smaller question", "%(count)s smaller questions", "number"
    ),
    "step": ngettext_lazy("%(count)s step", "%(count)s steps", "number"),
    "student with needs": ngettext_lazy(
        "%(count)s student’s needs", "%(count)s students’ needs", "number"
    ),
    "stroke": ngettext_lazy("%(count)s stroke", "%(count)s strokes", "number"),
    "student": ngettext_lazy("%(count)s student", "%(count)s students", "number"),
    "suite": ngettext_lazy("%(count)s suite", "%(count)s suites", "number"),
    "text": ngettext_lazy("%(count)s text", "%(count)s texts", "number"),
    "time": ngettext_lazy("%(count)s time", "%(count)s times", "number"),
    "unknown answer": ngettext_lazy(
        "%(count)s unknown answer", "%(count)s unknown answers", "number"
    ),
    "worker": ngettext_lazy("%(count)s worker", "%(count)s workers", "number"),
}


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun; a noun outside of `NOUNS` stays in English."""
    if plural or noun not in NOUNS:
        return counted_in_english(count, noun, plural)
    return _counted(get_language(), count, noun)


@lru_cache(maxsize=10_000)  # lists show the same counts again and again
def _counted(language: str | None, count: int, noun: str) -> str:
    """Return a count with its noun in the language of the thread, which is ``language``."""
    return str(NOUNS[noun] % {"number": count, "count": f"{count:,}"})
