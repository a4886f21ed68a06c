"""Needs of a student, read from a cell of a column of needs."""

import re

from engine.tabular.scales import declines_to_answer
from engine.tabular.survey_table import is_blank
from engine.tabular.text import fold_answer

_TRUE = {
    "yes", "y", "true", "1", "x", "needed", "required", "sí", "si", "ja", "oui", "checked",
    "selected", "wahr", "verdadero", "vrai", "✓", "✔", "☑",
}  # fmt: skip
_FALSE = {
    "no", "n", "false", "0", "-", "none", "nein", "non", "unchecked", "not selected", "falsch",
    "falso", "faux", "nothing", "nil", "no needs", "no need", "none needed", "not needed",
    "not required", "keine", "keiner", "kein bedarf", "nichts", "ninguno", "ninguna", "nada",
    "aucun", "aucune", "rien", "☐", "✗", "✘", "not applicable", "does not apply",
}  # fmt: skip


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
    if not text:
        return []
    said = fold_answer(text).rstrip(".")
    if said in _TRUE:
        return [column]
    if said in _FALSE or is_blank(text) or declines_to_answer(text):
        return []
    return [part.strip() for part in re.split(r"[;,|]", text) if part.strip()]
