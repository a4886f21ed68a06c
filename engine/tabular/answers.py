"""Content of a checked file: one person a row, with answers as level numbers."""

from dataclasses import dataclass

from engine.crf.questionnaire import Question
from engine.tabular.choices import Role
from engine.tabular.identity import place_in_name
from engine.tabular.preview import Preview

BLANK = -1


@dataclass(frozen=True, slots=True)
class TableAnswers:
    """Answers of the people in a file, in the order of its rows.

    Parameters
    ----------
    questions : the questions with their answers in order, and ``wordings`` with their full texts.
    ids : the id of every person; empty without an id column, and the caller then makes ids.
    codes : one row per question and one number per person, ``BLANK`` for no answer.
    rules : {column: values} of the columns that rules refer to, including needs.
    needs : the names of the columns that state a person's needs.
    emails, names, preferred, pronouns : blank if no column holds them.
    """

    questions: tuple[Question, ...]
    wordings: tuple[str, ...]
    ids: tuple[str, ...]
    codes: tuple[tuple[int, ...], ...]
    rules: dict[str, tuple[str, ...]]
    needs: tuple[str, ...]
    emails: tuple[str, ...]
    names: tuple[str, ...]
    preferred: tuple[str, ...]
    pronouns: tuple[str, ...]
    n_people: int


def read_answers(preview: Preview) -> TableAnswers:
    """Return the content of a file under choices that have no errors."""

    def one(role: Role) -> tuple[str, ...]:
        found = preview.columns_as(role)
        return preview.cells(found[0].index) if found else ()

    parts = sorted(preview.columns_as(Role.NAME), key=lambda c: place_in_name(c.title))
    rows = zip(*(preview.cells(c.index) for c in parts), strict=True)
    names = tuple(" ".join(filter(None, row)) for row in rows)
    questions = preview.columns_as(Role.QUESTION)
    codes = []
    for column in questions:
        code_of = {level: code for code, level in enumerate(column.choice.levels)}
        code_of[""] = BLANK
        codes.append(tuple(code_of[cell] for cell in preview.cells(column.index)))
    blank = ("",) * preview.n_students
    rules = [c for c in preview.columns if c.choice.role in (Role.CONSTRAINT, Role.NEED)]
    return TableAnswers(
        tuple(Question(c.name, c.choice.kind.value, c.choice.levels) for c in questions),
        tuple(c.wording for c in questions),
        one(Role.ID),
        tuple(codes),
        {c.name: preview.cells(c.index) for c in rules},
        tuple(c.name for c in rules if c.choice.role is Role.NEED),
        one(Role.EMAIL) or blank,
        names or blank,
        one(Role.PREFERRED) or blank,
        one(Role.PRONOUNS) or blank,
        preview.n_students,
    )
