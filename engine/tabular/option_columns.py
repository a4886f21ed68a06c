"""Questions with several answers, which survey programs write as one column per option.

Qualtrics ("Q5_1", "Q5_2", ... with "Question - Option" below), SurveyMonkey (options below their
question) and LimeSurvey ("G1Q2[SQ001]", "G1Q2[SQ002]") leave a cell blank if an option was not
chosen. That blank is a No of a person who chose another option. It is a missing answer only of a
person who chose none (or, if the file marks finished rows, of a person who did not finish). Taken
literally, every Yes would be "answered alike by everyone", and every No lost among the blanks.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.tabular.makers import LIMESURVEY

YES, NO = "Yes", "No"
# Marks for a chosen option in place of its own words.
_MARKS = {
    "1",
    "x",
    "y",
    "selected",
    "checked",
    "true",
    "yes",
    "ja",
    "oui",
    "sí",
    "si",
    "j",
    "o",
    "s",
}
_SUBMITTED = re.compile(r"submitdate|date submitted", re.I)
_OTHER = re.compile(r"other\b|sonstige|andere|otr[oa]|autre", re.I)  # a column of typed answers
_BRACKETS = re.compile(r"(?P<question>[^\s\[\]]+)\[(?P<option>[^\[\]]+)\](?:\.|$)")
_BRACKETS_BEHIND = re.compile(r"(?P<question>.+?)\s*\[(?P<option>[^\[\]]+)\]")
_CODE = re.compile(r"(?P<question>.+)_(?P<option>\d+)$")
_MIN_OPTIONS = 2
_BEFORE = " - "  # separates a question from its option


@dataclass(frozen=True, slots=True)
class OptionColumns:
    """Columns (positions) of one question, each with its option."""

    positions: tuple[int, ...]
    options: tuple[str, ...]
    blank_rows: tuple[int, ...] | None = None  # unanswered rows; None: rows with nothing chosen


def find_option_columns(
    header: Sequence[str],
    wordings: Sequence[str],
    rows: Sequence[Sequence[str]],
    maker: str = "",
) -> tuple[OptionColumns, ...]:
    """Return the questions that have one column per option, in the order of the columns.

    Neighbours belong together if they share a number ("Q5_1", "Q5_2") or a question before
    their option. A column is of that kind if it holds one text only: its option or a mark. At
    least one person has to have chosen two, or it would be a single-choice question.
    """
    if maker == LIMESURVEY:
        return tuple(_limesurvey(header, rows))
    said = tuple(wordings) or tuple(header)
    found = []
    for positions, stem in _runs(header, said, has_codes=bool(wordings)):
        options = tuple(said[k].removeprefix(stem).strip() for k in positions)
        chosen = [{row[k].strip() for row in rows} - {""} for k in positions]
        is_marked = all(
            len(values) <= 1 and all(_is_choice(value, option) for value in values)
            for values, option in zip(chosen, options, strict=True)
        )
        if is_marked and any(sum(bool(row[k]) for k in positions) >= 2 for row in rows):
            found.append(OptionColumns(positions, options))
    return tuple(found)


def _limesurvey(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[OptionColumns]:
    """Yield the questions with several answers: "G1Q2[SQ001]", with Y or a blank in every cell.

    The column of "other" holds typed text. Columns with a No in them are plain questions.
    """
    finished = next((k for k, name in enumerate(header) if _SUBMITTED.match(name)), None)
    # A finished person was shown the question: a blank is an option not chosen.
    blank = () if finished is None else tuple(k for k, row in enumerate(rows) if not row[finished])
    start = 0
    while start < len(header):
        stem, option = _bracketed(header[start])
        positions, options = [start], [option]
        while stem and positions[-1] + 1 < len(header):
            other, option = _bracketed(header[positions[-1] + 1])
            if other != stem:
                break
            positions.append(positions[-1] + 1)
            options.append(option)
        marks = [
            k for k, option in zip(positions, options, strict=True) if not _OTHER.match(option)
        ]
        values = {row[k].strip().casefold() for k in marks for row in rows} - {""}
        has_blank = any(not row[k] for k in marks for row in rows)
        if len(marks) >= _MIN_OPTIONS and len(values) == 1 and values <= _MARKS and has_blank:
            yield OptionColumns(
                tuple(positions), tuple(options), None if finished is None else blank
            )
        start = positions[-1] + 1


def _bracketed(title: str) -> tuple[str, str]:
    """Return the question and the option of a LimeSurvey title; empty if it has none."""
    code = _BRACKETS.match(title) or _BRACKETS_BEHIND.fullmatch(title)
    if code is None:
        return "", ""
    words = _BRACKETS_BEHIND.fullmatch(title)
    return code["question"], words["option"] if words else code["option"]


def with_answers(
    rows: Sequence[tuple[str, ...]], groups: Sequence[OptionColumns]
) -> tuple[tuple[str, ...], ...]:
    """Return the rows with Yes and No in these columns; rows with nothing chosen stay blank."""
    if not groups:
        return tuple(rows)
    changed = []
    for position, row in enumerate(rows):
        cells = list(row)
        for group in groups:
            has_any = any(row[k] for k in group.positions)
            if group.blank_rows is not None:
                has_any = has_any or position not in group.blank_rows
            for k in group.positions:
                cells[k] = (YES if row[k] else NO) if has_any else ""
        changed.append(tuple(cells))
    return tuple(changed)


def _runs(
    header: Sequence[str], said: Sequence[str], *, has_codes: bool
) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield neighbouring columns of one question, with the words before their options."""
    start = 0
    while start < len(header) - 1:
        stem = _shared(said[start], said[start + 1])
        code = _CODE.match(header[start]) if has_codes else None
        end = start
        while end < len(header) and stem and said[end].startswith(stem):
            other = _CODE.match(header[end]) if has_codes else None
            if code and (other is None or other["question"] != code["question"]):
                break
            end += 1
        if end - start >= _MIN_OPTIONS:
            yield tuple(range(start, end)), stem
        start = max(end, start + 1)


def _shared(one: str, other: str) -> str:
    """Return the longest shared beginning of both that ends before an option."""
    words, others = one.split(_BEFORE)[:-1], other.split(_BEFORE)[:-1]
    same = 0
    while same < min(len(words), len(others)) and words[same] == others[same]:
        same += 1
    return _BEFORE.join(words[:same]) + _BEFORE if same else ""


def _is_choice(value: str, option: str) -> bool:
    plain = " ".join(value.split()).casefold()
    return plain in _MARKS or plain == " ".join(option.split()).casefold()
