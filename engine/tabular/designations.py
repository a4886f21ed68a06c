"""Designations of a room: who may live there, by one column or by several.

"F" is a value of the column that the rules choose; "Gender=F; Class year=1|2" names the columns.
"""

import re
from collections.abc import Mapping

_ANYBODY = {
    "", "any", "anyone", "anybody", "all", "all genders", "mixed", "co-ed", "coed", "open", "none",
    "general", "-",
}  # fmt: skip
_TITLE = re.compile(
    r"\b(designation|restriction|restricted to|reserved for|room|hall|floor)\b", re.I
)


def read_designations(text: str) -> dict[str, tuple[str, ...]]:
    """Return the values that a room admits, without case, by column; "" for the rules' column.

    A student may live there if each column admits the student's value. ";" parts columns, "|" parts
    values. Columns are without case too; words for anybody are left out.

    Examples
    --------
    >>> read_designations("F")
    {'': ('f',)}
    >>> read_designations("Gender = F; Class year=1|2; Theme=any")
    {'gender': ('f',), 'class year': ('1', '2')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for part in text.split(";"):
        column, _, values = part.rpartition("=")
        admitted = [" ".join(value.split()).casefold() for value in values.split("|")]
        if _ANYBODY & {*admitted}:
            continue
        name = " ".join(column.split()).casefold()
        found[name] = tuple(dict.fromkeys((*found.get(name, ()), *admitted)))
    return found


def designations_in_words(text: str) -> str:
    """Return designations as pages say them: "Gender: F; Class year: 1 or 2".

    Examples
    --------
    >>> designations_in_words("Gender=F;Class year=1|2")
    'Gender: F; Class year: 1 or 2'
    """
    parts = [part.partition("=") for part in text.split(";") if part.strip()]
    return "; ".join(
        f"{name.strip()}: {_listed(values)}" if is_named else _listed(name)
        for name, is_named, values in parts
    )


def _listed(values: str) -> str:
    return " or ".join(" ".join(value.split()) for value in values.split("|"))


def join_designations(cells: Mapping[str, str]) -> str:
    """Return one text for the cells of several columns; a single column keeps its bare cell.

    Examples
    --------
    >>> join_designations({"Gender Designation": "F", "Theme": "Quiet", "Year": "any"})
    'Gender=F; Theme=Quiet'
    >>> join_designations({"Gender Designation": "F|M"})
    'F|M'
    """
    known = {
        title: " ".join(cell.split())
        for title, cell in cells.items()
        if " ".join(cell.split()).casefold() not in _ANYBODY
    }
    if len(cells) == 1:
        return next(iter(known.values()), "")
    return "; ".join(
        cell if "=" in cell else f"{column_of_title(title)}={cell}" for title, cell in known.items()
    )


def column_of_title(title: str) -> str:
    """Return the column of students that a title of the room file means: "Gender"."""
    return " ".join(_TITLE.sub(" ", title.replace("_", " ")).split()) or title.strip()
