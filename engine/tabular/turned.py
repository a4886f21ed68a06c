"""Files that are turned: students in columns, questions in rows."""

import re

from engine.tabular.table import Table
from engine.tabular.text import fold_title

_LEAST = 4  # students beside each other
_SHARE = 0.8
_PERSON = re.compile(
    r"\d{3,}|[^\s@]+@[^\s@]+\.[^\s@]+|[A-PR-UW-Z][A-Z]?[-_ ]?\d{3,}|"
    r"(?:student|person|participant|respondent|resident|applicant)[ _#-]*\d+",
    re.I,
)
_CORNER = {"", "question", "questions", "item", "items", "statement", "frage", "fragen", "pregunta",
           "preguntas", "questionnaire", "survey"}  # fmt: skip
_LEAST_WORDS = 4  # of a question; names have fewer


def students_in_columns(table: Table) -> tuple[str, ...]:
    """Return the titles of columns if they are numbers or e-mails of students; else nothing.

    The first column must hold questions then: its title says so, or most of its cells do.
    """
    titles = table.header[1:]
    people = tuple(title for title in titles if _PERSON.fullmatch(title))
    if len(people) < max(_LEAST, _SHARE * len(titles)):
        return ()
    asked = [cell for cell in table.column(0) if cell]
    are_questions = sum(map(_is_question, asked)) >= _SHARE * len(asked) > 0
    is_corner = fold_title(table.header[0]) in _CORNER and len(set(asked)) == len(asked)
    return people if are_questions or is_corner else ()


def _is_question(cell: str) -> bool:
    return cell.endswith("?") or len(cell.split()) >= _LEAST_WORDS
