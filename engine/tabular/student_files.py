"""Files about the students of a cohort: the columns that identify a student, and the data.

Requests, choices of halls, needs and e-mails come in files of their own or with the survey itself.
So a column is recognised by its title and by its cells: a column titled for roommates whose cells
name people is a request, and "I study with music on" is not.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from engine.tabular.answer_order import order_answers
from engine.tabular.facts import facts_of
from engine.tabular.id_column import is_id_title
from engine.tabular.identity import (
    FAMILY,
    columns_by_person,
    is_of_another,
    is_preferred,
    mail_rank,
    name_parts,
    place_in_name,
)
from engine.tabular.makers import is_e_mail_name
from engine.tabular.personal import (
    is_e_mail,
    is_nobody,
    looks_like_person,
    names_a_person,
    names_a_thing,
    names_others,
    says_apart,
)
from engine.tabular.scales import declines_to_answer
from engine.tabular.survey_table import is_blank
from engine.tabular.table import Table
from engine.tabular.text import fold_answer, title_words

Finder = Callable[[str], Collection[object]]  # every person of the cohort whom a text names

FEW_COLUMNS = 6  # a table this narrow was made for its purpose; a wider one is a survey
SEVERAL = re.compile(r"[;,|/\n]")  # separators of several people in one cell
_ENOUGH = 0.5
_NEARLY_ALL = 0.8  # share of the rows that names identify, from which ids or e-mails are trusted
_WANTED = re.compile(
    r"\b(?:wants?|wanted|wish(?:es)?|request(?:s|ed)?|asks? for)\b|room ?mates?\b|friend"
    r"|^(?:with|to|target|other)$",
    re.I,
)
# Words in a cell that turn a request for a person into its contrary, or may do so.
_REFUSES = re.compile(
    r"\b(?:not|never|avoid\w*|except|apart|away from|separate\w*|no contact|any(?:one|body) but|"
    r"other than|instead of|nicht|niemals|kein\w*|außer|no quiero|nunca|evitar|excepto|menos|pas|"
    r"jamais|éviter|sauf)\b|n['’]t\b",
    re.I,
)
_CHOICE = re.compile(
    r"\b(?:first|second|third|fourth|fifth|[1-5](?:st|nd|rd|th)|top)\b.{0,20}\b(?:choice|"
    r"preference|hall|building)|\b(?:choice|preference|rank)s? ?#?\d?$|"
    r"\bwhich (?:hall|building|residence|dorm\w*)|"
    r"\b(?:hall|residence|building|dorm\w*)\b.{0,20}\bprefer|"
    r"\bprefer\w*\b.{0,20}\b(?:hall|building|residence|dorm\w*)|"
    r"\b(?:kind|type) of room\b|\broom (?:type|kind)",
    re.I,
)
_CHOICE_IN_SMALL_FILE = re.compile(
    r"choice|prefer|hall|building|room type|kind|first|second|third|fourth|fifth|\d|rank", re.I
)
_NEED = re.compile(
    r"\bneeds?\b|accessib|\bada\b|wheelchair|step.?free|accommodation|ground.?floor|barrier|"
    r"disabilit|\bquiet\b|\bdeaf\b|hard of hearing|medical",
    re.I,
)
_ABOUT_LIKING = re.compile(r"^I \w|prefer|would you like|important", re.I)
_NAME = re.compile(
    r"name|\bnm\b|nombre|apellido|^(?:(?:stu|student|legal) )?(?:first|last|preferred)$", re.I
)
_LONGEST_NAME_TITLE = 30
_LONGEST_NAME = 5  # words
_NO_CHOICE = re.compile(
    r"no (?:preference|choice)|any(?: hall| building| room)?|none|keine (?:präferenz|angabe)|"
    r"sin preferencia|aucune préférence",
    re.I,
)
_YES_OR_NO = frozenset({
    "yes", "y", "true", "1", "x", "si", "sí", "ja", "oui", "no", "n", "false", "0", "-", "nein",
    "non", "none",
})  # fmt: skip


def who_columns(table: Table, find: Finder, besides: Collection[int] = ()) -> tuple[int, ...]:
    """Return the columns that identify the student of a row: one, or first and last name.

    A column of ids or e-mails wins if it names nearly as many students as any other: a row with an
    id that the cohort does not have is about somebody else, even if the cohort has a namesake. Then
    the column that names most students wins, an id before an e-mail before a name. If no column
    names a student, it is the one with a fitting title, else the first.
    """
    columns = [k for k in range(table.n_columns) if k not in besides]
    hits = {k: sum(n for cell, n in table.answers(k).items() if find(cell)) for k in columns}
    best = max(columns, key=lambda k: (hits[k], _rank(table, k), -k), default=None)
    if best is None:
        return ()
    names = _name_parts(table, columns)
    joined = [" ".join(row[k] for k in names if row[k]) for row in table.rows]
    named = sum(bool(find(name)) for name in joined if name) if len(names) > 1 else 0
    enough = max(1.0, _NEARLY_ALL * max(named, hits[best]))
    certain = [k for k in columns if _rank(table, k) > 1 and hits[k] >= enough]
    if certain:
        return (max(certain, key=lambda k: (_rank(table, k), hits[k], -k)),)
    if named > hits[best]:
        return tuple(names)
    if hits[best]:
        return (best,)
    titled = max(columns, key=lambda k: (_rank(table, k), -k))
    return (titled,)


def _rank(table: Table, index: int) -> int:
    title = table.header[index]
    if is_id_title(title):
        return 3
    if is_e_mail_name(title):
        return 2
    return int(re.search(r"student|from|asker|\bby\b", title, re.I) is not None)


def _titled_names(table: Table, columns: Collection[int]) -> dict[int, str]:
    """Return {column: its title in words} of the columns of names, whoever's they are."""
    titles = {k: title_words(table.header[k]) for k in columns}
    return {
        k: title
        for k, title in titles.items()
        if _NAME.search(title)
        and len(table.header[k]) <= _LONGEST_NAME_TITLE
        and not is_wanted_title(table, k)
        and not any(is_e_mail(cell) for cell in table.answers(k))
    }


def _name_parts(table: Table, columns: Collection[int]) -> list[int]:
    """Return the columns of the student's name in its order: one, or given and family name.

    Names of other people and of things are left out. A preferred name counts where no other column
    holds a given or a full name.
    """
    titles = {
        k: title
        for k, title in _titled_names(table, columns).items()
        if not is_of_another(title) and not names_a_thing(title)
    }
    preferred = [k for k in titles if is_preferred(titles[k])]
    parts = name_parts(facts_of(table), titles, [k for k in titles if k not in preferred])
    if preferred and all(place_in_name(titles[k]) == FAMILY for k in parts):
        return [preferred[0], *parts]
    return parts


def name_columns(table: Table, besides: Collection[int] = ()) -> list[int]:
    """Return the columns that make up the name of a row's student, in the order of a name."""
    return _name_parts(table, [k for k in range(table.n_columns) if k not in besides])


def in_name_order(table: Table, columns: Collection[int]) -> list[int]:
    """Return chosen name columns in the order of a name; columns without such a title come last."""
    order = name_columns(table)
    return sorted(columns, key=lambda k: order.index(k) if k in order else len(order))


def is_wanted_title(table: Table, index: int) -> bool:
    """Return True if a title means a requested roommate."""
    said = _said(table, index)
    is_asked = _WANTED.search(said) is not None or names_others(said)
    return is_asked and not is_apart_title(table, index)


def is_apart_title(table: Table, index: int) -> bool:
    """Return True if a title asks with whom the student must not live: "Do not place with"."""
    return says_apart(_said(table, index))


def apart_columns(table: Table, columns: Collection[int], find: Finder) -> tuple[int, ...]:
    """Return those columns in which students name people with whom they must not live."""
    apart = [k for k in columns if is_apart_title(table, k)]
    return tuple(_columns_of_people(table, apart, find))


def refuses(text: str) -> bool:
    """Return True if a text may name somebody who is not wanted: "anyone but Ben Lee"."""
    return _REFUSES.search(text) is not None


def wanted_columns(table: Table, find: Finder) -> tuple[int, ...]:
    """Return the columns that name requested roommates."""
    asked = [k for k in range(table.n_columns) if not is_apart_title(table, k)]
    titled = [k for k in asked if is_wanted_title(table, k)]
    peopled = _columns_of_people(table, titled, find)
    if table.n_columns > FEW_COLUMNS:
        return tuple(peopled)
    if titled and len(titled) < table.n_columns:
        return tuple(titled)
    who = who_columns(table, find)
    rest = [k for k in asked if k not in who]
    return tuple(_columns_of_people(table, rest, find) or rest[:1])


def people_columns(table: Table, columns: Collection[int]) -> list[list[int]]:
    """Return columns by the person whom they name: given and family name may stand in two."""
    return columns_by_person({k: _said(table, k) for k in sorted(columns)})


def name_in(row: Sequence[str], columns: Sequence[int]) -> str:
    """Return the name in a cell of a row, or in two that are parts of it."""
    if len(columns) == 1:
        return row[columns[0]]
    return " ".join(row[k] for k in columns if not is_nobody(row[k]))


def _columns_of_people(table: Table, columns: Collection[int], find: Finder) -> list[int]:
    """Return those columns in which people are named."""
    return sorted(
        k for one in people_columns(table, columns) if _names_people(table, one, find) for k in one
    )


def _names_people(table: Table, columns: Sequence[int], find: Finder) -> bool:
    if len(columns) == 1:
        answers = table.answers(columns[0])
    else:
        names = (name_in(row, columns) for row in table.rows)
        answers = Counter(name for name in names if not is_blank(name))
    cells = [
        part.strip()
        for cell in answers
        for part in ([cell] if find(cell) else SEVERAL.split(cell))
        if part.strip()
    ]
    cells = [cell for cell in cells if not is_nobody(cell)]
    named = sum(bool(find(cell)) or looks_like_person(cell) for cell in cells)
    whole = sum(map(names_a_person, answers))
    asked = sum(not is_nobody(cell) for cell in answers)
    return (named > 0 and named >= _ENOUGH * len(cells)) or (whole > 0 and whole >= _ENOUGH * asked)


def request_columns(table: Table, unused: Collection[int]) -> tuple[int, ...]:
    """Return those unused columns of a survey in which students name requested roommates."""
    titled = [k for k in unused if names_others(_said(table, k)) and not is_apart_title(table, k)]
    return tuple(_columns_of_people(table, titled, lambda text: ()))


def persons_in(text: str, find: Finder) -> list[str]:
    """Return the e-mails and full names in a sentence that name a person of the cohort.

    Longer names come before shorter ones, so "Ana Luz Roy" is not "Luz Roy".
    """
    words = text.split()
    found: list[str] = []
    start = 0
    while start < len(words):
        for size in range(min(_LONGEST_NAME, len(words) - start), 0, -1):
            part = " ".join(words[start : start + size]).strip(" .,;:!?()\"'")
            if (size > 1 or "@" in part) and find(part):
                found.append(part)
                start += size - 1
                break
        start += 1
    return list(dict.fromkeys(found))


def choice_columns(table: Table, who: Collection[int]) -> tuple[int, ...]:
    """Return the columns that rank halls or kinds of rooms, in the order of the file."""
    rest = [k for k in range(table.n_columns) if k not in who]
    found = [k for k in rest if _CHOICE.search(_said(table, k))]
    if found or table.n_columns > FEW_COLUMNS:
        return tuple(found)
    named = {k for k in _titled_names(table, rest) if "name" in table.header[k].casefold()}
    plain = [k for k in rest if k not in named and not is_e_mail_name(table.header[k])]
    return tuple([k for k in plain if _CHOICE_IN_SMALL_FILE.search(table.header[k])] or plain)


def need_columns(table: Table, who: Collection[int]) -> tuple[int, ...]:
    """Return the columns that state needs of students: words of needs, or a yes."""
    rest = [k for k in range(table.n_columns) if k not in who]
    found = [k for k in rest if _NEED.search(_said(table, k)) and _says_needs(table, k)]
    if found or table.n_columns > FEW_COLUMNS:
        return tuple(found)
    named = _titled_names(table, rest)
    return tuple(k for k in rest if k not in named and not is_e_mail_name(table.header[k]))


def _says_needs(table: Table, index: int) -> bool:
    answers = [cell for cell in table.answers(index) if not is_blank(cell)]
    if all(fold_answer(cell) in _YES_OR_NO for cell in answers):
        return True
    is_scale = len(answers) > 1 and order_answers(answers)[1]
    return not is_scale and _ABOUT_LIKING.search(_said(table, index)) is None


def e_mail_column(table: Table, who: Collection[int]) -> int | None:
    """Return the column of e-mails; the id column only if no other holds e-mails.

    E-mails of parents and other people are never taken. Of several columns that are filled about
    as well, the one of the university comes first, an old or second one last.
    """
    ranks = {
        k: mail_rank(table.header[k])
        for k in range(table.n_columns)
        if not is_wanted_title(table, k) and not is_apart_title(table, k)
    }
    hits = {
        k: sum(n for cell, n in table.answers(k).items() if "@" in cell) for k in ranks if ranks[k]
    }
    enough = _ENOUGH * max(hits.values(), default=0)
    return max(
        (k for k, n in hits.items() if n),
        key=lambda k: (k not in who, hits[k] >= enough, ranks[k], hits[k], -k),
        default=None,
    )


def ranked_choices(cells: Collection[str]) -> list[str]:
    """Return the choices of a row in order, without "No preference"."""
    said = (" ".join(cell.split()) for cell in cells)
    return list(dict.fromkeys(text for text in said if not _is_no_choice(text)))


def _is_no_choice(cell: str) -> bool:
    return is_blank(cell) or declines_to_answer(cell) or _NO_CHOICE.fullmatch(cell) is not None


def _said(table: Table, index: int) -> str:
    wording = table.wordings[index] if index < len(table.wordings) else ""
    return wording or table.header[index]
