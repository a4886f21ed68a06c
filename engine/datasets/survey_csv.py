"""Reader of the command line's survey, pairs and rules files, by the import page's reader."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_callables, check_choice, check_whole
from engine.crf.questionnaire import Questionnaire
from engine.crf.rules import Rules
from engine.crf.survey import Survey, check_pairs
from engine.datasets.csv_table import file_name, naming, read_csv_table, read_file
from engine.tabular.answers import read_answers
from engine.tabular.choices import Role
from engine.tabular.layout import find_layout
from engine.tabular.pair_choices import (
    PairChoices,
    find_pairs_layout,
    guess_pair_choices,
    with_whole_names,
)
from engine.tabular.pairs import PairsPreview
from engine.tabular.pairs import check_pairs as check_pair_rows
from engine.tabular.person_search import People
from engine.tabular.personal import E_MAILS, NAMES, personal_kind
from engine.tabular.preview import Preview
from engine.tabular.table import Table, build_table
from engine.tabular.text import fold_title
from engine.tabular.unattended import Fixes, Unattended, read_unattended, shared_questions

MIN_STUDENTS = 2
FIRST_NUMBER = 1001  # of students without ids, as the pages number them
_LOGGER = logging.getLogger(__name__)

OnNote = Callable[[str], None]


def read_survey_csv(
    path: Path | str,
    questionnaire: Questionnaire,
    *,
    fixes: Fixes = "refuse",
    on_note: OnNote | None = None,
    min_students: int = MIN_STUDENTS,
) -> Survey:
    r"""Read one cohort that answered the given questions.

    The file is CSV or XLSX and is read as the import page reads it. Questions are found by their
    name, title or wording; every column but the id becomes an attribute too, which rules may refer
    to. In a file without ids, students are named S-1001, S-1002, ... in the order of the rows.

    Parameters
    ----------
    path : Path or str
    questionnaire : Questionnaire
        The questions of the survey.
    fixes : "refuse", "all" or "none"
        Answer to the import page's questions: refuse the file with one sentence, use every fix, or
        decline them and read the file literally.
    on_note : callable, optional
        Gets a sentence for every automatic change; by default they are logged.
    min_students : int, default 2
        A shorter file is refused: pairs need two students, rooms only one.

    Returns
    -------
    Survey
        One row per student, in the order of the file.

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
    check_choice("fixes", fixes, get_args(Fixes))
    if on_note is not None:
        check_callables(on_note=on_note)
    check_whole("min_students", min_students, at_least=1)
    table = _read_table(path)
    return _survey(path, table, questionnaire, fixes, on_note, min_students)


def infer_questionnaire(
    paths: Sequence[Path | str], *, fixes: Fixes = "refuse", on_note: OnNote | None = None
) -> Questionnaire:
    r"""Return the questions that the files share, with the answers of all files together.

    Parameters
    ----------
    paths : sequence of Path or str
        Files of one or several years.
    fixes, on_note
        As in `read_survey_csv`.

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
    check_choice("fixes", fixes, get_args(Fixes))
    if on_note is not None:
        check_callables(on_note=on_note)
    return _shared([(path, _read_table(path)) for path in paths], fixes, on_note)


def read_surveys(
    paths: Sequence[Path | str],
    questionnaire: Questionnaire | None = None,
    *,
    fixes: Fixes = "refuse",
    on_note: OnNote | None = None,
) -> list[Survey]:
    """Read several years by one questionnaire, or by the questions that they share.

    Parameters
    ----------
    paths : sequence of Path or str
    questionnaire : Questionnaire, optional
        The questions; by default those that the files share.
    fixes, on_note
        As in `read_survey_csv`.

    Returns
    -------
    list of Survey, one per file
    """
    check_choice("fixes", fixes, get_args(Fixes))
    if on_note is not None:
        check_callables(on_note=on_note)
    tables = [(path, _read_table(path)) for path in paths]
    if questionnaire is None:
        questionnaire = _shared(tables, fixes, on_note)
        on_note = _LOGGER.debug  # automatic changes are reported
    return [_survey(path, table, questionnaire, fixes, on_note) for path, table in tables]


def _read_table(path: Path | str) -> Table:
    source = read_file(path)
    with naming(path):
        return build_table(source, find_layout(source))


def _shared(
    tables: Sequence[tuple[Path | str, Table]], fixes: Fixes, on_note: OnNote | None
) -> Questionnaire:
    """Return the questions of all tables; a single table need not have enough students."""
    previews = []
    for path, table in tables:
        found = _unattended(path, table, fixes, None)
        _tell(path, found, on_note)
        previews.append((file_name(path), found.preview))
    return shared_questions(previews)


def _unattended(
    path: Path | str, table: Table, fixes: Fixes, questionnaire: Questionnaire | None
) -> Unattended:
    with naming(path):
        return read_unattended(table, fixes, questionnaire)


def _tell(path: Path | str, found: Unattended, on_note: OnNote | None) -> None:
    for note in found.notes:
        (on_note or _LOGGER.info)(f"{file_name(path)}: {note}")


def _survey(
    path: Path | str,
    table: Table,
    questionnaire: Questionnaire,
    fixes: Fixes,
    on_note: OnNote | None,
    min_students: int = MIN_STUDENTS,
) -> Survey:
    found = _unattended(path, table, fixes, questionnaire)
    _tell(path, found, on_note)
    answers = read_answers(found.preview)
    ids = answers.ids or tuple(f"S-{FIRST_NUMBER + k}" for k in range(answers.n_people))
    if len(ids) < min_students:
        raise InvalidProblemError(f"{file_name(path)} has one student; pairs need at least two.")
    place = {question.name: k for k, question in enumerate(answers.questions)}
    codes = [answers.codes[place[name]] for name in questionnaire.names]
    table_of_codes = np.array(codes, dtype=np.int16).T.reshape(len(ids), len(codes))
    return Survey(ids, questionnaire, table_of_codes, _attributes(found.preview))


def _attributes(preview: Preview) -> dict[str, tuple[str, ...]]:
    """Return {name: cells} of every column but the id: rules may refer to any of them."""
    others = [column for column in preview.columns if column.choice.role is not Role.ID]
    return {column.name: preview.cells(column.index) for column in others}


def people_of(survey: Survey) -> People:
    """Return the names by which students of a survey may be given: ids, e-mails and full names."""
    kinds = {
        name: personal_kind(name, "", Counter(filter(None, cells)))
        for name, cells in survey.attributes.items()
        if name not in survey.questionnaire.names
    }
    mails = [name for name, kind in kinds.items() if kind == E_MAILS]
    named = [name for name, kind in kinds.items() if kind == NAMES]
    emails = survey.attributes[mails[0]] if mails else ()
    full = [name for name in named if "first" not in fold_title(name)]
    full = [name for name in full if "last" not in fold_title(name)] or named[:2]
    columns = [survey.attributes[name] for name in (full[:1] if full != named[:2] else full)]
    names = tuple(" ".join(filter(None, parts)) for parts in zip(*columns, strict=True))
    return People(survey.ids, emails, names)


def read_pairs_csv(path: Path | str, survey: Survey, *, fixes: Fixes = "refuse") -> IntArray:
    """Read two columns of ids, e-mails or names, one pair per row, as indices (p, 2).

    The first row is a pair if it names students. Further columns are ignored.

    Parameters
    ----------
    path : Path or str
    survey : Survey
        Whose students the file names.
    fixes : "refuse", "all" or "none"
        Answer to the import page's questions, as in `read_survey_csv`.

    Returns
    -------
    ndarray, shape (p, 2), int64
        Indices into the survey.

    Raises
    ------
    InvalidProblemError
        Naming the row and id: unknown, paired twice, with themselves, or a row with one id; or if
        a row names more than two people, which is a room.

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
    check_choice("fixes", fixes, get_args(Fixes))
    found = read_shared_rooms(path, survey, fixes=fixes)
    if found.rooms:
        raise InvalidProblemError(
            f"{file_name(path)} names rooms of more than two; expected pairs of students."
        )
    return pairs_of(found, survey)


def read_shared_rooms(path: Path | str, survey: Survey, *, fixes: Fixes = "refuse") -> PairsPreview:
    """Read past roommates: pairs, rows of more people, or a roster of people and rooms.

    Raises InvalidProblemError in one sentence if the import page would ask or refuse.
    """
    check_choice("fixes", fixes, get_args(Fixes))
    people, source = people_of(survey), read_file(path)
    with naming(path):
        layout = find_pairs_layout(source, people)
        table = with_whole_names(build_table(source, layout, min_columns=1))
        if table.n_columns < 2:
            raise InvalidProblemError("Expected two columns of ids, received one.")
        choices = guess_pair_choices(table, people)
        found = check_pair_rows(table, people, choices)
        if fixes == "all":
            choices = choices.with_same({**found.sure, **found.zeros})
            found = check_pair_rows(table, people, choices)
        if found.errors:
            raise InvalidProblemError(_refusal(found, choices))
    return found


def _refusal(found: PairsPreview, choices: PairChoices) -> str:
    """Return the first question or error of the import page."""
    first = found.errors[0]
    if found.zeros:
        return f"{first.sentence} {first.detail} Add --fixes all to match them."
    near = next((one for one in found.unknown if one.near and one.near.is_sure), None)
    if near is not None and near.near is not None and near.cell in first.sentence:
        return f"{first.sentence} Nearly {near.near.said}: add --fixes all to take it for them."
    if any(one.namesakes for one in found.unknown):
        return f"{first.sentence} Name them by their id or e-mail."
    return first.sentence


def pairs_of(found: PairsPreview, survey: Survey) -> IntArray:
    """Return the pairs of a file as indices (p, 2) into the survey."""
    pairs = np.array(found.pairs, dtype=np.int64).reshape(-1, 2)
    return check_pairs(pairs, survey.n_students, survey.ids)


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
        may_be_short=True,
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
