"""Named fields of a letter, and their replacement by values."""

import re
from collections.abc import Collection, Mapping

from django.utils.translation import gettext as _
from rapidfuzz import process

from webapp.translation.lazy import gettext_lazy

FIELDS = {
    "name": gettext_lazy("the student's name"),
    "id": gettext_lazy("the student's id in the housing system"),
    "hall": gettext_lazy("the hall"),
    "floor": gettext_lazy("the floor"),
    "room": gettext_lazy("the room, without the hall"),
    "suite": gettext_lazy("the suite, such as Suite 201"),
    "place": gettext_lazy("suite and room, such as “Suite 201, room 201A”, or “room 312”"),
    "bed": gettext_lazy("the bed's number"),
    "kind": gettext_lazy("single, double, triple, ..."),
    "first day": gettext_lazy("the first day of the bed: the student's own, else the term's"),
    "last day": gettext_lazy("the last day of the bed"),
    "roommates": gettext_lazy("the roommates' names, or that there is none"),
    "suite mates": gettext_lazy("the names of the people in other rooms of the suite"),
    "contacts": gettext_lazy("the roommates' e-mails, of those who may be named"),
    "cohort": gettext_lazy("the name of the cohort"),
    "page": gettext_lazy(
        "the link to the student's own page; letters that are sent from here have it"
    ),
    "organisation": gettext_lazy("the name of your organisation"),
}
MAY_BE_EMPTY = ("floor", "suite", "suite mates", "first day", "last day", "contacts")
_FIELD = re.compile(r"\[([A-Za-z][A-Za-z _-]{0,39})\]")
_ONLY_FIELDS = re.compile(r"(?:\s*\[[A-Za-z][A-Za-z _-]{0,39}\]\s*)+")
_ALIKE = 60.0  # of 100; below, the nearest field is not suggested


def fields_in(text: str) -> list[str]:
    """Return the fields in a text, each once, including unknown fields."""
    return list(dict.fromkeys(found.strip().casefold() for found in _FIELD.findall(text)))


def unknown_fields(text: str, known: Collection[str] = tuple(FIELDS)) -> list[str]:
    """Return a sentence for every unknown field, with the nearest known field."""
    sentences = []
    for name in fields_in(text):
        if name not in known:
            near = process.extractOne(name, list(known), score_cutoff=_ALIKE)
            fix = (
                _("Did you mean [%(near)s]?") % {"near": near[0]}
                if near
                else _("Take one of the list, or remove it.")
            )
            sentences.append(_("[%(name)s] is no field. %(fix)s") % {"name": name, "fix": fix})
    return sentences


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return a text with its fields filled in; a line with only empty fields is removed."""
    lines = []
    for line in text.splitlines():
        filled = _FIELD.sub(lambda found: values.get(found[1].strip().casefold(), found[0]), line)
        if filled.strip() or not _ONLY_FIELDS.fullmatch(line):
            lines.append(filled)
    return "\n".join(lines)
