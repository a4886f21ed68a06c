"""Needs of a student, read from a cell of a column of needs."""

import re

_TRUE = {"yes", "y", "true", "1", "x", "needed", "required", "sí", "si", "ja", "oui"}
_FALSE = {"", "no", "n", "false", "0", "-", "none", "nein", "non"}


def parse_needs(column: str, text: str) -> list[str]:
    """Return the needs in one cell: the column's own name for a yes, the cell's words otherwise.

    Commas, semicolons and bars separate several needs.

    Parameters
    ----------
    column : str, name of the column.
    text : str, the cell.

    Examples
    --------
    >>> parse_needs("Step-free", "Yes"), parse_needs("Needs", "Quiet; Ground floor")
    (['Step-free'], ['Quiet', 'Ground floor'])
    """
    text = text.strip()
    if text.casefold() in _TRUE:
        return [column]
    if text.casefold() in _FALSE:
        return []
    return [part.strip() for part in re.split(r"[;,|]", text) if part.strip()]
