"""Checks of an import, of the whole and of every column; problems are in the product's words."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from engine.tabular.choices import MAX_LEVELS, Choices, ColumnChoice, Kind, Role
from engine.tabular.chosen_table import ChosenColumn, ChosenTable
from engine.tabular.id_column import is_id_title
from engine.tabular.ids import is_destroyed
from engine.tabular.numerals import as_finite_number, is_numeral
from engine.tabular.problems import Fix, Problem, Severity
from engine.tabular.table import Table
from engine.tabular.text import fold_answer, fold_id
from engine.tabular.turned import students_in_columns
from engine.tabular.words import counted, small_number

MAX_QUESTIONS = 60
MAX_GROUPS = 50
MAX_LISTED = 20
DESTROYED_IDS = "destroyed ids"
TURNED = "turned"
_BLANK_SHARE = 0.05
_SAME_SHARE = 0.95
_SHORT_FOR = {
    "y": ("yes",), "n": ("no", "nein", "non"), "t": ("true",), "f": ("female", "false", "femme"),
    "j": ("ja",), "m": ("male", "man", "männlich", "masculino", "masculin"),
    "w": ("woman", "weiblich"), "d": ("divers",), "nb": ("non-binary", "nonbinary"),
}  # fmt: skip


def check_whole(chosen: ChosenTable, most_questions: int | None) -> list[Problem]:
    """Return the problems that belong to no single column."""
    table, choices, n_students = chosen.table, chosen.choices, len(chosen.kept)
    problems = _turned(table, choices)
    roles = Counter(column.role for column in choices.columns)
    if n_students < 2:
        problems.append(
            Problem(
                Severity.ERROR,
                f"Only {counted(n_students, 'student')}: at least 2 are needed to make a pair.",
                kind="too few",
            )
        )
    if not roles[Role.QUESTION]:
        problems.append(_no_question(choices))
    elif most_questions is not None and roles[Role.QUESTION] > most_questions:
        problems.append(_too_many_questions(roles[Role.QUESTION]))
    if roles[Role.ID] > 1:
        names = [
            column.name or table.header[index]
            for index, column in enumerate(choices.columns)
            if column.role is Role.ID
        ]
        problems.append(
            Problem(
                Severity.ERROR,
                f"{names[0]} and {names[1]} are both used as the id.",
                "Only one column can be the id.",
            )
        )
    problems += _destroyed_ids(table, choices)
    if not roles[Role.ID] and not problems:
        problems.append(
            Problem(
                Severity.NOTE,
                "No column is used as the id, so ids are made in the order of the rows.",
                "Keep the file: only its order tells who is who.",
            )
        )
    if n_students >= 2 and n_students % 2:
        problems.append(
            Problem(
                Severity.NOTE,
                f"{n_students:,} students cannot all be paired: one stays single.",
                "You choose who when pairs are proposed.",
            )
        )
    return problems + _short_rows(table, choices)


def _turned(table: Table, choices: Choices) -> list[Problem]:
    """Return an error if students seem to stand in columns, unless staff said that they do not."""
    people = () if TURNED in choices.settled else students_in_columns(table)
    if not people:
        return []
    return [
        Problem(
            Severity.ERROR,
            f"The columns seem to be students ({people[0]}, {people[1]}, …), and the rows "
            "questions.",
            "Each row must be a student: copy the table, paste it transposed, and upload it again.",
            kind=TURNED,
        )
    ]


def _destroyed_ids(table: Table, choices: Choices) -> list[Problem]:
    """Return an error if the only ids of a file have lost their last digits."""
    ids = [k for k, column in enumerate(choices.columns) if column.role is Role.ID]
    if not ids and DESTROYED_IDS not in choices.settled:
        ids = [k for k in range(table.n_columns) if is_id_title(table.header[k])]
    for index in ids:
        if index < table.n_columns and is_destroyed(table.answers(index)):
            example = next(iter(table.answers(index)))
            return [
                Problem(
                    Severity.ERROR,
                    f"Excel has destroyed these ids: {table.header[index]} holds {example}.",
                    "The last digits are lost. Format the column as text in the first file, and "
                    "save it again.",
                    column=index,
                    kind=DESTROYED_IDS,
                )
            ]
    return []


def _short_rows(table: Table, choices: Choices) -> list[Problem]:
    """Return one warning per row with a missing cell, and a button to leave the row out."""
    short = [number for number in table.short_rows if number not in choices.left_out]
    problems = [
        Problem(
            Severity.WARNING,
            f"Row {number:,} has one cell fewer than the header.",
            "The last one is read as blank. If another is missing, answers are in wrong columns.",
            row=number,
            fixes=(Fix(f"Leave out row {number:,}", "leave_out", row=number),),
        )
        for number in short[:MAX_LISTED]
    ]
    hidden = len(short) - MAX_LISTED
    if hidden > 0:
        more = counted(hidden, "more row has", "more rows have")
        problems.append(Problem(Severity.WARNING, f"{more} one cell fewer than the header."))
    return problems


_KEEP_BEST = (
    Fix("Use the 14 that differ most", "keep_best", meaning="14"),
    Fix("Use the 24 that differ most", "keep_best", meaning="24"),
)


def _no_question(choices: Choices) -> Problem:
    usable = sum(len(c.levels) >= 2 and c.role is not Role.ID for c in choices.columns)
    if usable <= MAX_QUESTIONS:
        return Problem(
            Severity.ERROR,
            "No column is used as a question.",
            "Choose the questions that say how students live.",
        )
    return Problem(
        Severity.ERROR,
        f"{usable} columns could be questions: choose 14 to 30 of them.",
        "Mark columns and set their use together, or start from those whose answers differ most.",
        fixes=_KEEP_BEST,
    )


def _too_many_questions(count: int) -> Problem:
    return Problem(
        Severity.ERROR,
        f"{count} questions are chosen; at most {MAX_QUESTIONS} can be learned from.",
        "14 to 30 well-chosen questions are usual. Mark columns and set their use together, "
        "or use those whose answers differ most.",
        fixes=_KEEP_BEST,
    )


def check_column(column: ChosenColumn) -> list[Problem]:
    """Return the problems of a column under its use."""
    if column.choice.role is Role.ID:
        return _check_ids(column)
    if column.choice.role is Role.QUESTION:
        return _check_question(column)
    return _check_constraint(column) if column.choice.role is Role.CONSTRAINT else []


def _check_ids(column: ChosenColumn) -> list[Problem]:
    """Return one problem per repeated or missing id, with a button per row to leave out."""
    name, index = column.name, column.index
    rows: dict[str, list[int]] = defaultdict(list)
    written: dict[str, str] = {}
    for number, cell in zip(column.rows, column.cells, strict=True):
        key = fold_id(cell)
        rows[key].append(number)
        written.setdefault(key, cell)
    problems = []
    for number in rows.pop("", [])[:MAX_LISTED]:
        problems.append(
            Problem(
                Severity.ERROR,
                f"Row {number:,}: {name} is blank.",
                "Every student needs an id.",
                row=number,
                column=index,
                fixes=(Fix(f"Leave out row {number:,}", "leave_out", row=number),),
            )
        )
    repeated = [(value, found) for value, found in rows.items() if len(found) > 1]
    for value, found in repeated[:MAX_LISTED]:
        problems.append(_repeated_id(written[value], found, index))
    hidden = len(repeated) - MAX_LISTED
    if hidden > 0:
        sentence = f"{hidden:,} more ids appear more than once. Is {name} really the id?"
        problems.append(Problem(Severity.ERROR, sentence, column=index))
    return problems


def _repeated_id(value: str, found: list[int], index: int) -> Problem:
    first, last = found[0], found[-1]
    return Problem(
        Severity.ERROR,
        f"Row {last:,}: {value} appears {'twice' if len(found) == 2 else f'{len(found)} times'}, "
        f"first in row {first:,}.",
        "Leave one out.",
        row=last,
        column=index,
        fixes=(
            Fix(f"Leave out row {last:,}", "leave_out", row=last),
            Fix(f"Leave out row {first:,}", "leave_out", row=first),
        ),
    )


def _check_question(column: ChosenColumn) -> list[Problem]:
    """Return unknown answers, too many or too few levels, blanks and one-sided answers."""
    name, index, choice, counts = column.name, column.index, column.choice, column.counts
    if column.made_dates:
        return [_made_dates(name, index, list(column.made_dates.values()))]
    if len(choice.levels) > MAX_LEVELS or (not choice.levels and len(counts) > MAX_LEVELS):
        return [_too_many_answers(name, index, max(len(choice.levels), len(counts)))]
    if len(counts) <= 1:
        return [_constant(name, index, next(iter(counts), ""))]
    problems = []
    if choice.kind is Kind.BINARY and len(choice.levels) != 2:
        problems.append(
            Problem(
                Severity.ERROR,
                f"{name} has {small_number(len(choice.levels))} answers, so it is not binary.",
                "Choose ordinal if the answers have an order, else nominal.",
                column=index,
                kind="not binary",
            )
        )
    problems += _unknown_answers(column)
    problems += _spellings(name, index, {level: counts[level] for level in choice.levels})
    problems += _blanks(name, index, column.n_blank, len(column.cells))
    problems += _one_sided(name, index, counts)
    return problems


def _made_dates(name: str, index: int, ranges: list[str]) -> Problem:
    return Problem(
        Severity.ERROR,
        f"{name}: Excel made dates of {', '.join(ranges[:4])}.",
        "Restore them, or leave the column out.",
        column=index,
        kind="made dates",
    )


def _too_many_answers(name: str, index: int, count: int) -> Problem:
    return Problem(
        Severity.ERROR,
        f"{name} has {count:,} different answers; at most {MAX_LEVELS} can be learned from.",
        "Ignore it, or group its values in the file.",
        column=index,
        kind="many answers",
        fixes=(Fix("Ignore this column", "role", column=index, meaning="ignore"),),
    )


def _constant(name: str, index: int, value: str) -> Problem:
    what = f"everyone answered “{value}”" if value else "nobody answered"
    return Problem(
        Severity.ERROR,
        f"{name}: {what}.",
        "It cannot tell one pair from another.",
        column=index,
        kind="constant",
        fixes=(Fix("Ignore this column", "role", column=index, meaning="ignore"),),
    )


def _unknown_answers(column: ChosenColumn) -> list[Problem]:
    name, index, choice = column.name, column.index, column.choice
    known = set(choice.levels) | {""}
    first_row: dict[str, int] = {}
    for number, cell in zip(column.rows, column.cells, strict=True):
        if cell not in known:
            first_row.setdefault(cell, number)
    problems = []
    for value, row in list(first_row.items())[:MAX_LISTED]:
        problems.append(_unknown_answer(name, index, choice, value, row, column.counts[value]))
    if len(first_row) > MAX_LISTED:
        rest = len(first_row) - MAX_LISTED
        problems.append(
            Problem(Severity.ERROR, f"{name}: {rest:,} more unknown answers.", column=index)
        )
    return problems


def _unknown_answer(
    name: str, index: int, choice: ColumnChoice, value: str, row: int, times: int
) -> Problem:
    shown = _short(value)
    more = f" (and {counted(times - 1, 'other row')})" if times > 1 else ""
    blank = Fix("Treat as blank", "meaning", column=index, answer=value)
    if is_numeral(value) and as_finite_number(value) is None:
        return Problem(
            Severity.ERROR,
            f"Row {row:,}, {name}: “{shown}” is not a finite number{more}.",
            "Tell us what it means, or treat it as a blank.",
            row=row,
            column=index,
            fixes=(blank,),
        )
    meant = [level for level in choice.levels if fold_answer(level) == fold_answer(value)]
    same = tuple(_count_as(index, value, level) for level in meant[:1])
    count = small_number(len(choice.levels))
    add = Fix("Add it as an answer", "add_level", column=index, answer=value)
    return Problem(
        Severity.ERROR,
        f"Row {row:,}, {name}: “{shown}” is not one of the {count} answers{more}.",
        "Expected one of: " + ", ".join(choice.levels) + ".",
        row=row,
        column=index,
        fixes=(*same, blank, add),
    )


def _spellings(name: str, index: int, counts: Mapping[str, int]) -> list[Problem]:
    """Return one warning per answer with several spellings, and a button per spelling.

    A number in full-width digits counts as another spelling even if nobody typed the plain one, and
    "Y" is one of "Yes" where somebody wrote that.
    """
    ways: dict[str, list[str]] = defaultdict(list)
    plain_ones = {fold_answer(value) for value in counts}
    for value in sorted(counts, key=lambda value: -counts[value]):
        plain = fold_answer(value)
        whole = next((x for x in _SHORT_FOR.get(plain, ()) if x in plain_ones), plain)
        ways[whole].append(value)
    problems = []
    for plain, found in ways.items():
        meant = next(value for value in found if fold_answer(value) == plain)
        if not meant.isascii() and is_numeral(plain):
            meant = plain
        others = [value for value in found if value != meant]
        if others:
            written = " and ".join(
                f"“{_short(value)}”" for value in dict.fromkeys([meant, *others])
            )
            problems.append(
                Problem(
                    Severity.WARNING,
                    f"{name}: {written} count as different.",
                    "They differ only in capitals, spaces, quotes, dashes or widths, "
                    "or one is short for the other.",
                    column=index,
                    kind="spelling",
                    fixes=tuple(_count_as(index, value, meant) for value in others),
                )
            )
    return problems


def _short(value: str) -> str:
    return value if len(value) <= 40 else value[:39] + "…"


def _count_as(index: int, value: str, meaning: str) -> Fix:
    label = f"Count “{_short(value)}” as “{_short(meaning)}”"
    return Fix(label, "meaning", column=index, answer=value, meaning=meaning)


def _blanks(name: str, index: int, n_blank: int, total: int) -> list[Problem]:
    if not n_blank or n_blank < _BLANK_SHARE * total:
        return []
    return [
        Problem(
            Severity.WARNING,
            f"{name}: {counted(n_blank, 'blank')} ({100 * n_blank / total:.0f} %).",
            "A blank is a case of its own, never read as an answer. "
            "Pairs with blanks have less certain scores.",
            column=index,
            kind="blanks",
        )
    ]


def _one_sided(name: str, index: int, counter: Counter[str]) -> list[Problem]:
    value, times = counter.most_common(1)[0]
    if times < _SAME_SHARE * counter.total():
        return []
    return [
        Problem(
            Severity.WARNING,
            f"{name}: almost everyone answered “{value}”.",
            "It can still be learned from; it will separate few pairs.",
            column=index,
            kind="one-sided",
        )
    ]


def _check_constraint(column: ChosenColumn) -> list[Problem]:
    """Return the reasons why a “same” rule would be useless, and the meaning of its blanks."""
    name, index, counts = column.name, column.index, column.counts
    if len(counts) > MAX_GROUPS:
        return [
            Problem(
                Severity.ERROR,
                f"{name} has {len(counts):,} different values; a constraint may have {MAX_GROUPS}.",
                "Pairs must share the value, so most students would stay single.",
                column=index,
                kind="many values",
                fixes=(Fix("Ignore this column", "role", column=index, meaning="ignore"),),
            )
        ]
    problems = _spellings(name, index, counts)
    if column.n_blank:
        problems.append(
            Problem(
                Severity.WARNING,
                f"{name}: {counted(column.n_blank, 'blank')}.",
                "Students without a value form a group of their own when pairs must share it.",
                column=index,
                kind="blanks",
            )
        )
    alone = [value for value, count in counts.items() if count == 1]
    for value in alone[:3]:
        problems.append(
            Problem(
                Severity.WARNING,
                f"{name}: only one student has “{value}”.",
                "Under a rule on this column that student stays single.",
                column=index,
                kind="alone",
            )
        )
    return problems
