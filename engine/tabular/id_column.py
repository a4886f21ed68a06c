"""Choice of the id column, by the ids that repeat and not by columns whose values all differ.

The id of a response differs in every row. A person who answers twice shows only by their own number
or e-mail. So those come first, and the id of the response only if the file has no number or
e-mail of the person.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.tabular.dates import read_times
from engine.tabular.ids import is_no_id
from engine.tabular.makers import Own, is_e_mail_name, own_column
from engine.tabular.personal import names_others
from engine.tabular.survey_table import ID_TITLE
from engine.tabular.table import Table

_MIN_FILLED = 0.6
_LONGEST_TITLE = 30  # letters; a longer one that names a number is a question
_MIN_DIFFERENT = 0.5
_PERSON = re.compile(
    r"\b(?:student|university|uni|campus|banner|person|peoplesoft|emplid|employee)\b.{0,12}"
    r"\b(?:id|no|nr|number|code|#)\b|\b(?:uin|netid|net id|sid|puid|unid|emplid|matric\w*)\b|"
    r"matrikel|matrícula|matricula|kennung|n[uú]mero de (?:estudiante|alumno)|numéro étudiant|"
    r"^student(?:[ _-]?(?:id|no|nr|number))?$|student_?id|studentid",
    re.I,
)
_RESPONSE = re.compile(r"^(?:response|respondent|submission|entry|record|answer|antwort)s?[ _-]?"
                       r"(?:id|no|nr|number|#)?$", re.I)  # fmt: skip


@dataclass(frozen=True, slots=True)
class IdColumn:
    """The id column with the reason for it; ``n_repeats`` counts further rows of known people."""

    index: int
    reason: str
    n_repeats: int


def find_id_column(table: Table, guessed: int | None) -> IdColumn | None:
    """Return the column of ids; ``guessed`` is the choice by names of columns alone."""
    persons = [_judged(table, index) for index in range(table.n_columns)]
    usable = [one for one in persons if one is not None]
    own = [one for one in usable if one.rank == 0]
    mails = [one for one in usable if one.rank == 1]
    best = min(own, key=lambda one: (one.n_blank, one.index), default=None) or min(
        mails, key=lambda one: (one.n_blank, one.index), default=None
    )
    plain = next((one for one in usable if one.index == guessed and one.rank != 4), None)
    if plain is not None and (best is None or _is_better(plain, best)):
        return IdColumn(plain.index, "Every row has its own value.", plain.n_repeats)
    if best is not None:
        reason = "It tells one person from another."
        if best.n_repeats:
            reason = "Some people have several rows; an id of the response would hide that."
        return IdColumn(best.index, reason, best.n_repeats)
    response = next((one for one in usable if one.rank == 2 and not one.n_repeats), None)
    if response is not None:
        return IdColumn(response.index, "The file has nothing else that tells people apart.", 0)
    return None


def is_number_title(title: str) -> bool:
    """Return True if a title names the number of a person."""
    return len(title) <= _LONGEST_TITLE and "?" not in title and bool(_PERSON.search(title))


def is_id_title(title: str) -> bool:
    """Return True if a title names the number of a person or of a response."""
    return (
        _PERSON.search(title) is not None
        or _RESPONSE.match(title) is not None
        or ID_TITLE.match(title.strip()) is not None
    )


def is_response_id(table: Table, index: int) -> bool:
    """Return True if a column holds the id of a response, where capitals make a difference."""
    name = table.header[index]
    own = own_column(table.layout.maker, name, index)
    return own is Own.RESPONSE_ID or (own is None and _RESPONSE.match(name) is not None)


@dataclass(frozen=True, slots=True)
class _Judged:
    index: int
    rank: int  # 0 a number of the person, 1 an e-mail, 2 the response, 3 other, 4 never an id
    n_blank: int
    n_repeats: int


def _is_better(plain: _Judged, best: _Judged) -> bool:
    """Return True for a plain id that repeats as well, or if no id of the person repeats."""
    if plain.rank == 2 and best.rank < 2:
        return False
    if plain.index == best.index or best.rank == 0:
        return plain.index == best.index
    return not (best.n_repeats and not plain.n_repeats)


def _judged(table: Table, index: int) -> _Judged | None:
    cells = table.answered(index)
    empty = {cell for cell in set(cells) if is_no_id(cell)}
    filled = [cell for cell in cells if cell not in empty]
    different = {cell.casefold() for cell in filled}
    if len(filled) < _MIN_FILLED * len(cells) or len(different) < _MIN_DIFFERENT * len(filled):
        return None
    rank = _rank(table, index, filled)
    return _Judged(index, rank, len(cells) - len(filled), len(filled) - len(different))


def _rank(table: Table, index: int, filled: Sequence[str]) -> int:
    name = table.header[index]
    wording = table.wordings[index] if index < len(table.wordings) else ""
    own = own_column(table.layout.maker, name, index)
    if is_response_id(table, index):
        return 2
    if own in (Own.TIME, Own.STATUS, Own.OTHER, Own.FINISHED, Own.NAME) or read_times(filled):
        return 4
    is_short = sum(len(cell) for cell in filled) <= 60 * len(filled)
    mails = sum("@" in cell for cell in filled)
    if mails and own is None and names_others(f"{name} {wording}"):
        return 4  # the e-mail of a requested roommate
    if (
        own in (Own.E_MAIL, Own.TICKET)
        or (mails > 0.9 * len(filled))
        or (mails and is_e_mail_name(name))
    ):
        return 1
    if own is Own.PERSON or (is_short and (_PERSON.search(name) or _PERSON.search(wording))):
        return 0
    return 3
