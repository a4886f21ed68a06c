"""Choice of the id column, by the ids that repeat and not by columns whose values all differ.

The id of a response differs in every row. A person who answers twice shows only by their own number
or e-mail. So those come first, and the id of the response only if the file has no number or
e-mail of the person.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.tabular.dates import read_times
from engine.tabular.facts import ColumnFacts
from engine.tabular.ids import is_no_id
from engine.tabular.makers import Own, is_e_mail_name
from engine.tabular.personal import NUMBER_TITLE, names_others
from engine.tabular.survey_table import ID_TITLE
from engine.tabular.text import title_words

_MIN_FILLED = 0.6
_MIN_DIFFERENT = 0.5
_MIN_PEOPLE = 0.04  # of the rows, in a file in which each student has many
_OF_A_STUDENT = re.compile(
    r"^(?:(?:student|resident|participant|person|respondent|applicant)s?[ _-]?"
    r"(?:id|no|nr|number|#)|studentid|net ?id|uin|sid|emplid|matric\w*|matrikel\w*)$",
    re.I,
)
# Ids of a student system: some digits, or a letter and digits.
_SHAPE = re.compile(r"[A-Za-z]{0,3}[-_ ]?\d{5,12}")
_MOST_LENGTHS = 2
_LEAST_IDS = 6
_SAYS_ID = re.compile(
    r"\bids?\b|\bid(?:ent)?[ .]|\w{1,4}id$|\b(?:card|[a-z]) ?(?:number|no|nr)\b", re.I
)
# Titles of other numbers that may differ from row to row.
_OF_OTHERS = re.compile(
    r"\b(?:(?:tele|cell)?phone|mobile|cell|tel|handy|fax|zip|postal|post ?code|plz|birth|dob\b|"
    r"dates?\b|time|room|building|hall|unit|bed\b|locker|(?:mail)?box|floor|ip\b|order|invoice|"
    r"collector|session|network|contact|parent|guardian|emergency|advis[eo]r|income|salary|seed|"
    r"seconds|duration)",
    re.I,
)
_OF_A_PROGRAM = re.compile(
    r"\b(?:network|session|contact|collector|tracking|browser|device) ?ids?\b", re.I
)
_RESPONSE = re.compile(r"^(?:response|respondent|submission|entry|record|answer|antwort)s?[ _-]?"
                       r"(?:id|no|nr|number|#)?$", re.I)  # fmt: skip


@dataclass(frozen=True, slots=True)
class IdColumn:
    """The id column with the reason for it; ``n_repeats`` counts further rows of known people."""

    index: int
    reason: str
    n_repeats: int


def find_id_column(facts: Sequence[ColumnFacts], guessed: int | None) -> IdColumn | None:
    """Return the column of ids; ``guessed`` is the choice by names of columns alone."""
    usable = [one for one in map(_judged, facts) if one is not None]
    own = [one for one in usable if one.rank == 0]
    mails = [one for one in usable if one.rank == 1]
    best = min(own, key=lambda one: (one.n_blank, one.index), default=None) or min(
        mails, key=lambda one: (one.n_blank, one.index), default=None
    )
    repeated = next((one for one in usable if one.rank == 2 and one.n_repeats), None)
    if best is None and repeated is not None and _is_of_a_student(facts[repeated.index]):
        return IdColumn(repeated.index, "Some people have several rows.", repeated.n_repeats)
    plain = next((one for one in usable if one.index == guessed and one.rank != 4), None)
    if plain is not None and (best is None or _is_better(plain, best)):
        return IdColumn(plain.index, "Every row has its own value.", plain.n_repeats)
    if best is not None:
        reason = "It tells one person from another."
        if best.n_repeats:
            reason = "Some people have several rows; an id of the response would hide that."
        return IdColumn(best.index, reason, best.n_repeats)
    shaped = next((one for one in usable if one.rank == 5), None)
    if shaped is not None:
        return IdColumn(shaped.index, "Every row has its own number.", 0)
    response = next((one for one in usable if one.rank == 2 and not one.n_repeats), None)
    if response is not None:
        return IdColumn(response.index, "The file has nothing else that tells people apart.", 0)
    return None


def is_id_title(title: str) -> bool:
    """Return True if a title names the number of a person or of a response."""
    return any(
        NUMBER_TITLE.search(text) is not None
        or _RESPONSE.match(text) is not None
        or ID_TITLE.match(text) is not None
        for text in (title.strip(), title_words(title))
    )


def is_response_id(column: ColumnFacts) -> bool:
    """Return True if a column holds the id of a response, where capitals make a difference."""
    is_named = column.own is None and _RESPONSE.match(column.name) is not None
    return is_named or column.own is Own.RESPONSE_ID


@dataclass(frozen=True, slots=True)
class _Judged:
    index: int
    # 0 a number of the person, 1 an e-mail, 2 the response, 3 other, 4 never an id, 5 by its look
    rank: int
    n_blank: int
    n_repeats: int


def _is_better(plain: _Judged, best: _Judged) -> bool:
    """Return True for a plain id that repeats as well, or if no id of the person repeats."""
    if plain.rank == 2 and best.rank < 2:
        return False
    if plain.index == best.index or best.rank == 0:
        return plain.index == best.index
    return not (best.n_repeats and not plain.n_repeats)


def _judged(column: ColumnFacts) -> _Judged | None:
    filled = {cell: n for cell, n in column.counts.items() if not is_no_id(cell)}
    n_rows, n_filled = len(column.cells), sum(filled.values())
    n_different = len({cell.casefold() for cell in filled})
    least = _MIN_PEOPLE if _is_of_a_student(column) else _MIN_DIFFERENT
    if n_filled < _MIN_FILLED * n_rows or n_different < max(2, least * n_filled):
        return None
    return _Judged(column.index, _rank(column, filled), n_rows - n_filled, n_filled - n_different)


def _is_of_a_student(column: ColumnFacts) -> bool:
    return _OF_A_STUDENT.match(column.name.strip()) is not None


def _rank(column: ColumnFacts, filled: Mapping[str, int]) -> int:
    name, wording, own = column.name, column.wording, column.own
    if is_response_id(column):
        return 2
    said = title_words(f"{name} {wording}")
    if own in (Own.TIME, Own.STATUS, Own.OTHER, Own.FINISHED, Own.NAME):
        return 4
    if own is None and _OF_A_PROGRAM.search(said):
        return 4
    if read_times([cell for cell in column.cells if cell in filled]):
        return 4
    n_filled = sum(filled.values())
    is_short = sum(n * len(cell) for cell, n in filled.items()) <= 60 * n_filled
    mails = sum(n for cell, n in filled.items() if "@" in cell)
    if mails and own is None and names_others(f"{name} {wording}"):
        return 4  # the e-mail of a requested roommate
    if own in (Own.E_MAIL, Own.TICKET) or mails > 0.9 * n_filled:
        return 1
    if mails and is_e_mail_name(name):
        return 1
    if own is Own.PERSON or (
        is_short and (NUMBER_TITLE.search(name) or NUMBER_TITLE.search(wording))
    ):
        return 0
    if not _look_like_ids(filled) or names_others(f"{name} {wording}"):
        return 3
    return 3 if _OF_OTHERS.search(said) else 0 if _SAYS_ID.search(said) else 5


def _look_like_ids(filled: Mapping[str, int]) -> bool:
    """Return True if all cells differ and are as long as ids, with letters before them or not."""
    return (
        len(filled) >= _LEAST_IDS
        and all(n == 1 for n in filled.values())
        and all(map(_SHAPE.fullmatch, filled))
        and len(set(map(len, filled))) <= _MOST_LENGTHS
    )
