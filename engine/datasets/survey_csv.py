"""Survey, pairs and rules files of the command line."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.questionnaire import Questionnaire
from engine.crf.rules import Rules
from engine.crf.survey import BLANK, Survey, check_pairs
from engine.datasets.csv_table import CsvTable, read_csv_table
from engine.datasets.survey_table import classify_columns, is_blank

MIN_STUDENTS = 2
_COUNT_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def read_survey_csv(
    path: Path | str, questionnaire: Questionnaire, *, invent_ids: bool = False
) -> Survey:
    r"""Read one cohort that was asked the given questions.

    The id stands in column ``id`` or in the first column; every question has a column of its
    name; every column but the id becomes an attribute too, which rules may refer to. With
    ``invent_ids`` a file in which no column looks like an id gets R-0001, R-0002, ...

    Parameters
    ----------
    path : Path or str
    questionnaire : Questionnaire
        What everyone was asked.
    invent_ids : bool
        Whether the file may have no column of ids.

    Returns
    -------
    Survey
        One row a student, in the order of the file.

    Raises
    ------
    InvalidProblemError
        Naming the row and column or the id: an unseen answer, a repeated id, a missing question.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "survey.csv"
    >>> _ = path.write_text("id,Bedtime\na1,early\na2,late\na3,early\n")
    >>> questions = infer_questionnaire([path])
    >>> read_survey_csv(path, questions).ids
    ('a1', 'a2', 'a3')
    """
    table = read_csv_table(path)
    if invent_ids:
        table = _with_ids(table)
    return make_survey(table, questionnaire, Path(path).name)


def _with_ids(table: CsvTable) -> CsvTable:
    """Put a column of invented ids in front of a table that has none."""
    first = [row[0] for row in table.rows]
    if "id" in (title.lower() for title in table.header) or len(set(first)) == len(first):
        return table
    rows = tuple((f"R-{k:04d}", *row) for k, row in enumerate(table.rows, start=1))
    return CsvTable(("id", *table.header), rows, table.line_numbers)


def infer_questionnaire(paths: Sequence[Path | str], *, invent_ids: bool = False) -> Questionnaire:
    r"""Return the questions that the files share, with the answers of all of them together.

    Parameters
    ----------
    paths : sequence of Path or str
        CSV files of one or several years.
    invent_ids : bool
        Whether a file may have no column of ids.

    Returns
    -------
    Questionnaire
        The shared questions, in the order of the first file.

    Raises
    ------
    InvalidProblemError
        If the files have different columns, or no column looks like a question.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "survey.csv"
    >>> _ = path.write_text("id,Bedtime\na1,early\na2,late\na3,early\n")
    >>> questions = infer_questionnaire([path])
    >>> questions.names
    ('Bedtime',)
    """
    tables = [(Path(path).name, read_csv_table(path)) for path in paths]
    if invent_ids:
        tables = [(name, _with_ids(table)) for name, table in tables]
    first_name, first = tables[0]
    for name, table in tables[1:]:
        missing = [title for title in first.header if title not in table.header]
        if missing:
            raise InvalidProblemError(
                f"{name} was made from other questions than {first_name}: {missing[0]} is missing."
            )
    rows: list[tuple[str, ...]] = []
    for _, table in tables:
        order = [table.header.index(title) for title in first.header]
        rows.extend(tuple(row[k] for k in order) for row in table.rows)
    id_column = _id_column(first.header)
    guesses = classify_columns(first.header, rows)
    questions = tuple(
        guess.to_question()
        for index, guess in enumerate(guesses)
        if guess.role == "question" and index != id_column
    )
    if not questions:
        raise InvalidProblemError(f"{first_name}: no column looks like a question with answers.")
    return Questionnaire(questions)


def _id_column(header: Sequence[str]) -> int:
    lowered = [title.lower() for title in header]
    return lowered.index("id") if "id" in lowered else 0


def make_survey(table: CsvTable, questionnaire: Questionnaire, name: str) -> Survey:
    """Turn a table of text cells into a survey; see ``read_survey_csv``."""
    id_column = _id_column(table.header)
    ids = _read_ids(table, id_column, name)
    missing = [q for q in questionnaire.names if q not in table.header]
    if missing:
        raise InvalidProblemError(f"{name} was made from other questions: {missing[0]} is missing.")
    answers = np.full((len(ids), questionnaire.n_questions), BLANK, dtype=np.int16)
    for number, question in enumerate(questionnaire.questions):
        column = table.header.index(question.name)
        code_of = {level: code for code, level in enumerate(question.levels)}
        for row, cells in enumerate(table.rows):
            cell = cells[column]
            if cell in code_of:
                answers[row, number] = code_of[cell]
            elif not is_blank(cell):
                raise InvalidProblemError(
                    _unknown_answer(
                        name, table.line_numbers[row], question.name, cell, question.levels
                    )
                )
    attributes = {
        title: tuple("" if is_blank(cells[k]) else cells[k] for cells in table.rows)
        for k, title in enumerate(table.header)
        if k != id_column
    }
    return Survey(ids, questionnaire, answers, attributes)


def _unknown_answer(name: str, line: int, question: str, cell: str, levels: Sequence[str]) -> str:
    count = _COUNT_WORDS[len(levels)] if len(levels) < len(_COUNT_WORDS) else str(len(levels))
    return (
        f"{name}, row {line}, {question}: {cell[:40]!r} is not one of the {count} answers "
        f"({', '.join(levels[:8])}{', ...' if len(levels) > 8 else ''})."
    )


def _read_ids(table: CsvTable, column: int, name: str) -> tuple[str, ...]:
    first_line: dict[str, int] = {}
    for cells, line in zip(table.rows, table.line_numbers, strict=True):
        student = cells[column]
        if not student:
            raise InvalidProblemError(f"{name}, row {line}: the id is blank.")
        if student in first_line:
            raise InvalidProblemError(
                f"{name}, row {line}: {student} appears twice, first in row {first_line[student]}. "
                "Leave one out."
            )
        first_line[student] = line
    if len(first_line) < MIN_STUDENTS:
        raise InvalidProblemError(f"{name} has one student; pairs need at least two.")
    return tuple(first_line)


def read_pairs_csv(path: Path | str, survey: Survey) -> IntArray:
    """Read two columns of ids, one pair a line, as indices (p, 2) into the survey.

    The first line is a header if neither of its two cells is an id. Further columns are ignored.

    Parameters
    ----------
    path : Path or str
    survey : Survey
        Whose ids the file names.

    Returns
    -------
    ndarray, shape (p, 2), int64
        Indices into the survey.

    Raises
    ------
    InvalidProblemError
        Naming the row and id: unknown, paired twice, with themselves, or a row with one id.

    Examples
    --------
    >>> from engine.datasets.university import simulate_university
    >>> year = simulate_university(4, 1, rng=np.random.default_rng(0)).cohorts[0].survey
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "file.csv"
    >>> _ = path.write_text(",".join(year.ids[:2]))
    >>> read_pairs_csv(path, year).tolist()
    [[0, 1]]
    """
    index_of = {student: k for k, student in enumerate(survey.ids)}
    # One id is enough: a mistyped partner must be reported, not taken for the name of a column.
    table = read_csv_table(path, is_header=lambda row: index_of.keys().isdisjoint(row[:2]))
    name = Path(path).name
    if len(table.header) < 2:
        raise InvalidProblemError(f"{name}: expected two columns of ids, received one.")
    first_line: dict[str, int] = {}
    pairs = []
    for cells, line in zip(table.rows, table.line_numbers, strict=True):
        a, b = cells[:2]
        for student in (a, b):
            if not student:
                raise InvalidProblemError(f"{name}, row {line}: a pair needs two ids.")
            if student not in index_of:
                raise InvalidProblemError(f"{name}, row {line}: {student} is not in the survey.")
        if a == b:
            raise InvalidProblemError(f"{name}, row {line}: {a} is paired with themselves.")
        for student in (a, b):
            if student in first_line:
                raise InvalidProblemError(
                    f"{name}, row {line}: {student} is already in a pair, "
                    f"in row {first_line[student]}."
                )
            first_line[student] = line
        pairs.append((index_of[a], index_of[b]))
    return check_pairs(np.array(pairs, dtype=np.int64), survey.n_students, survey.ids)


def read_rules_csv(path: Path | str, survey: Survey) -> Rules:
    """Read rule,student_a,student_b with rule lock, forbid, single or same:COLUMN.

    The first line is a header if it neither starts with a rule nor holds an id.

    Parameters
    ----------
    path : Path or str
    survey : Survey
        Whose ids and columns the file names.

    Returns
    -------
    Rules
        Indices into the survey.

    Raises
    ------
    InvalidProblemError
        Naming the row: an unknown rule, id or column.

    Examples
    --------
    >>> from engine.datasets.university import simulate_university
    >>> year = simulate_university(4, 1, rng=np.random.default_rng(0)).cohorts[0].survey
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "file.csv"
    >>> _ = path.write_text("forbid," + ",".join(year.ids[:2]))
    >>> read_rules_csv(path, year).forbids
    ((0, 1),)
    """
    index_of = {student: k for k, student in enumerate(survey.ids)}
    table = read_csv_table(
        path,
        is_header=lambda row: not _is_rule(row[0]) and index_of.keys().isdisjoint(row[1:3]),
    )
    name = Path(path).name
    pairs: dict[str, list[tuple[int, int]]] = {"lock": [], "forbid": []}
    same: list[str] = []
    single: list[int] = []
    for cells, line in zip(table.rows, table.line_numbers, strict=True):
        rule, *rest = cells
        where = f"{name}, row {line}"
        if rule.lower().startswith("same:"):
            same.append(_same_column(rule[5:].strip(), survey.attributes, where))
        elif rule.lower() in pairs:
            students = [_student(x, index_of, where) for x in rest[:2]]
            if len(students) < 2 or students[0] == students[1]:
                raise InvalidProblemError(f"{where}: a {rule} needs two different ids.")
            pairs[rule.lower()].append((students[0], students[1]))
        elif rule.lower() == "single":
            single.append(_student(rest[0] if rest else "", index_of, where))
        else:
            raise InvalidProblemError(
                f"{where}: expected lock, forbid, single or same:COLUMN, received {rule!r}."
            )
    return Rules(tuple(pairs["lock"]), tuple(pairs["forbid"]), tuple(same), tuple(single))


def _is_rule(cell: str) -> bool:
    word = cell.lower()
    return word in {"lock", "forbid", "single"} or word.startswith("same:")


def _student(student: str, index_of: Mapping[str, int], where: str) -> int:
    if student not in index_of:
        what = f"{student} is not in the survey" if student else "an id is missing"
        raise InvalidProblemError(f"{where}: {what}.")
    return index_of[student]


def _same_column(column: str, attributes: Mapping[str, tuple[str, ...]], where: str) -> str:
    if column not in attributes:
        known = ", ".join(attributes) or "none"
        raise InvalidProblemError(
            f"{where}: same:{column} names no column of the survey; there are: {known}."
        )
    return column
