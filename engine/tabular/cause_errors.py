"""Causes that stop an import."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.tabular.causes import Act, Cause, Resolution, Sample, State
from engine.tabular.checks import DESTROYED_IDS, TURNED
from engine.tabular.choices import Choices, Keep, Kind, Role
from engine.tabular.identity import IDENTITY
from engine.tabular.ids import is_no_id
from engine.tabular.meanings import same_meaning
from engine.tabular.personal import are_e_mails
from engine.tabular.preview import (
    ColumnPreview,
    Preview,
    most_telling_questions,
)
from engine.tabular.responses import responses_of
from engine.tabular.survey_table import is_blank
from engine.tabular.words import counted, listed

_FILLED = 0.8  # of all answers, in a file with one a row
_LEAST_ASKED = 3  # questions in such a file; two rows of a person are two responses
_COMPARED = 300  # people whose rows are compared to count the differing answers


def errors_of(preview: Preview) -> Iterator[Cause]:
    """Return the causes that stop the import, those that affect most rows first."""
    yield from _turned(preview)
    yield from _destroyed_ids(preview)
    yield from _repeats(preview)
    yield from _blank_ids(preview)
    yield from _made_dates(preview)
    yield from _unknown(preview)
    yield from _useless(preview)
    yield from _whole(preview)


def _repeats(preview: Preview) -> Iterator[Cause]:
    if preview.choices.keep is not Keep.ALL:
        return
    found = preview.chosen.repeats
    if not found:
        return
    extra = sum(len(rows) for rows in found.values()) - len(found)
    people = counted(len(found), "person", "people")
    responses = responses_of(preview.table)
    has_times = responses.time_column is not None
    event = responses.event_column
    if event is not None:
        yield _events(preview, event, list(found.values()))
        return
    asked = _column_of_questions(preview, list(found.values()))
    if asked is not None:
        yield _answers_in_rows(preview, asked, len(found))
        return
    yield Cause(
        "repeats",
        State.ERROR,
        "users",
        f"{people} answered more than once",
        counted(extra, "further row"),
        f"{_differences(preview, list(found.values()))} An id can stand for one person only.",
        Resolution(
            "Keep the latest of each" if has_times else "Keep the last row of each",
            _keep(Keep.LATEST),
        ),
        Resolution("Keep the first of each", _keep(Keep.FIRST)),
        columns=tuple(c.index for c in preview.columns_as(Role.ID)),
        samples=tuple(_repeat_sample(preview, rows) for rows in list(found.values())[:2]),
    )


def _events(preview: Preview, event: int, people: list[list[int]]) -> Cause:
    """Return the cause for several rows per record, each of another event or form."""
    table = preview.table
    rows = counted(sum(map(len, people)) - len(people), "further row")
    title = f"{counted(len(people), 'record has', 'records have')} several events"
    counts = Counter(table.column(event))
    names = list(counts)
    if _make_one(preview, people):
        fix = Resolution("Join the rows of each record", _keep(Keep.JOINED))
        why = "No question is answered in two of them, so that they make one row together."
        other = None
    else:
        asked = [c.index for c in preview.columns_as(Role.QUESTION) if c.index < table.n_columns]
        filled: Counter[str] = Counter()
        for row in table.rows:
            filled[row[event]] += sum(bool(row[k]) for k in asked)
        best = max(names, key=lambda name: (filled[name], -names.index(name)))
        away = [
            n for n, row in zip(table.row_numbers, table.rows, strict=True) if row[event] != best
        ]
        fix = Resolution(
            f"Keep the rows of “{best[:40]}”", lambda choices: choices.without_rows(away, "event")
        )
        why = "The same questions are answered in several of them; one event can count."
        other = Resolution("Keep the latest of each", _keep(Keep.LATEST))
    return Cause(
        "repeats",
        State.ERROR,
        "users",
        title,
        rows,
        f"{listed([name or 'no event' for name in names])}. {why}",
        fix,
        other,
        columns=tuple(c.index for c in preview.columns_as(Role.ID)),
    )


def _column_of_questions(preview: Preview, people: list[list[int]]) -> int | None:
    """Return the column of questions, if each row of a person is the answer to one of them.

    Then no value of it repeats for a person, nearly everybody has a row for each value, and one
    other column at most holds answers.
    """
    n_columns = preview.table.n_columns
    questions = preview.columns_as(Role.QUESTION)
    of_file = [c.index for c in questions if c.index < n_columns and c.choice.groups is None]
    if not 1 <= len(of_file) <= 2:
        return None
    n_rows = sum(map(len, people))
    for index in of_file:
        cells = preview.table.column(index)
        named = [[cells[k] for k in rows] for rows in people]
        different = {cell for row in named for cell in row}
        is_once = all(len(set(row)) == len(row) for row in named)
        enough = _FILLED * len(people) * len(different)
        if is_once and len(different) >= _LEAST_ASKED and n_rows >= enough:
            return index
    return None


def _answers_in_rows(preview: Preview, asked: int, n_people: int) -> Cause:
    """Return the cause for a file with one answer a row. Leaving out rows does not help."""
    column = preview.columns[asked]
    values = list(preview.table.answers(asked))
    return Cause(
        "answers in rows",
        State.ERROR,
        "table",
        "Each row is one answer, not one student",
        f"{counted(preview.table.n_rows, 'row')} of {counted(n_people, 'student')}",
        f"“{column.name}” holds the questions: {listed(values, 4)}. Make a pivot table with a "
        "row for each student and a column for each of these, and upload that.",
        link="Choose another id",
        columns=tuple(c.index for c in preview.columns_as(Role.ID)),
    )


def _make_one(preview: Preview, people: list[list[int]]) -> bool:
    """Return True if no answer column holds two different cells of one record."""
    used = (Role.QUESTION, Role.CONSTRAINT, Role.NEED, *IDENTITY)
    columns = [
        preview.table.column(c.index)
        for c in preview.columns
        if c.index < preview.table.n_columns and c.choice.role in used
    ]
    return all(
        len({cells[k] for k in rows if not is_blank(cells[k])}) <= 1
        for rows in people
        for cells in columns
    )


def _turned(preview: Preview) -> Iterator[Cause]:
    for problem in preview.problems:
        if problem.kind == TURNED:
            yield Cause(
                TURNED,
                State.ERROR,
                "table",
                problem.sentence.rstrip("."),
                counted(preview.table.n_columns - 1, "column"),
                problem.detail,
                other=Resolution("These columns are questions", lambda c: c.settle(TURNED)),
            )


def _destroyed_ids(preview: Preview) -> Iterator[Cause]:
    found = [p.column for p in preview.problems if p.kind == DESTROYED_IDS]
    if found and found[0] is not None:
        yield _destroyed(preview, found[0])


def _destroyed(preview: Preview, index: int) -> Cause:
    mails = next(
        (k for k in range(preview.table.n_columns) if are_e_mails(preview.table.answers(k))), None
    )
    fix = None
    if mails is not None:
        name = preview.columns[mails].name
        fix = Resolution(f"Use {name[:30]} as the id", lambda c: c.with_role([mails], Role.ID))
    example = next(iter(preview.table.answers(index)))
    return Cause(
        DESTROYED_IDS,
        State.ERROR,
        "circle-alert",
        "Excel has destroyed these ids",
        f"{example} in {preview.columns[index].name}",
        "Their last digits are lost, and nobody can be found by them. Format the column as "
        "text in the first file and save it again.",
        fix,
        Resolution(
            "Make ids in the order of the rows",
            lambda c: c.with_role([index], Role.IGNORE).settle(DESTROYED_IDS),
        ),
        link="Choose another id",
        columns=(index,),
    )


def _made_dates(preview: Preview) -> Iterator[Cause]:
    for column in preview.columns_as(Role.QUESTION):
        made = preview.chosen.made_dates(column.index)
        if not made:
            continue
        cells = sum(preview.table.answers(column.index)[cell] for cell in made)
        index, key = column.index, f"made dates {column.header}"
        yield Cause(
            key,
            State.ERROR,
            "circle-alert",
            f"Excel made dates of {listed(list(made.values()), 6, quoted=False)}",
            f"{counted(cells, 'cell')} in {column.name}",
            "A range such as 1-2 becomes a day when it is typed into a spreadsheet.",
            Resolution("Restore them", _restore(index, made)),
            Resolution("They are dates", _call_dates(index, key)),
            link="Look at it",
            columns=(index,),
            samples=tuple(
                Sample(before=said, after=(typed,)) for said, typed in list(made.items())[:3]
            ),
        )


def _restore(index: int, made: dict[str, str]) -> Act:
    return lambda choices: choices.with_meanings(index, made)


def _call_dates(index: int, key: str) -> Act:
    return lambda choices: choices.with_role([index], Role.IGNORE).settle(key)


def _keep(keep: Keep) -> Act:
    return lambda choices: replace(choices, keep=keep)


def _differences(preview: Preview, people: list[list[int]]) -> str:
    """Return in how many answers the rows of one person differ."""
    questions = [
        c.index for c in preview.columns_as(Role.QUESTION) if c.index < preview.table.n_columns
    ]
    rows = preview.table.rows
    counts = [
        sum(len({rows[position][k] for position in positions}) > 1 for k in questions)
        for positions in people[:_COMPARED]
    ]
    low, high = min(counts), max(counts)
    if high == 0:
        return "Their rows hold the same answers."
    span = f"{low} to {high} answers" if low != high else counted(low, "answer")
    return f"Their rows differ in {span}."


def _repeat_sample(preview: Preview, positions: list[int]) -> Sample:
    table = preview.table
    index = preview.columns_as(Role.ID)[0].index
    responses = responses_of(table)
    kept, times = responses.latest(positions), responses.time_column

    def shown(position: int) -> str:
        row = f"row {table.row_numbers[position]:,}"
        return row if times is None else table.column(times)[position][:19] or row

    before = next(position for position in positions if position != kept)
    return Sample(table.column(index)[kept][:30], shown(before), (shown(kept),))


def _blank_ids(preview: Preview) -> Iterator[Cause]:
    for column in preview.columns_as(Role.ID):
        if column.n_blank:
            cells = preview.table.column(column.index)
            rows = [
                number
                for number, cell in zip(preview.table.row_numbers, cells, strict=True)
                if is_no_id(cell) and number not in preview.dropped
            ]
            said = [cell for cell in dict.fromkeys(cells) if cell and is_no_id(cell)]
            yield Cause(
                "blank ids",
                State.ERROR,
                "circle-help",
                f"{counted(len(rows), 'row is', 'rows are')} without an id",
                count=listed(said) if said else "",
                why="Without an id a student cannot be identified or given a room.",
                fix=Resolution(
                    f"Leave out {counted(len(rows), 'row')}",
                    lambda choices, rows=rows: choices.without_rows(rows, "no id"),  # type: ignore[misc]
                ),
                link="Choose another id",
                columns=(column.index,),
            )


def _unknown(preview: Preview) -> Iterator[Cause]:
    """Yield unknown answers of a question: other words for a known answer, or no known answer."""
    wrong = [
        c
        for c in preview.columns_as(Role.QUESTION)
        if c.unknown and not _is_useless(c) and not preview.chosen.made_dates(c.index)
    ]
    meant: dict[int, dict[str, str]] = {}
    blank: dict[int, list[str]] = {}
    for column in wrong:
        for k, (text, _) in enumerate(column.unknown):
            level = same_meaning(text, column.choice.levels) if k < _COMPARED else None
            if level is None:
                blank.setdefault(column.index, []).append(text)
            else:
                meant.setdefault(column.index, {})[text] = level
    if meant:
        yield _in_other_words(preview, meant)
    if blank:
        yield _fits_no_choice(preview, blank)


def _in_other_words(preview: Preview, meant: dict[int, dict[str, str]]) -> Cause:
    pairs = [pair for found in meant.values() for pair in found.items()]

    def count(choices: Choices) -> Choices:
        for index, found in meant.items():
            choices = choices.with_meanings(index, found)
        return choices

    return Cause(
        "other words",
        State.ERROR,
        "list",
        f"{counted(len(pairs), 'answer says', 'answers say')} a choice in other words",
        _where(preview, list(meant)),
        f"{listed([said for said, _ in pairs])}.",
        Resolution("Count as the choice", count),
        link="Decide one by one",
        columns=tuple(meant),
        samples=tuple(Sample(before=said[:30], after=(level[:30],)) for said, level in pairs[:3]),
    )


def _fits_no_choice(preview: Preview, blank: dict[int, list[str]]) -> Cause:
    texts = list(dict.fromkeys(text for found in blank.values() for text in found))
    cells = sum(
        times
        for index, found in blank.items()
        for text, times in preview.columns[index].unknown
        if text in found
    )

    def treat_as_blank(choices: Choices) -> Choices:
        for index, found in blank.items():
            choices = choices.with_meanings(index, dict.fromkeys(found, ""))
        return choices

    return Cause(
        "unknown answers",
        State.ERROR,
        "circle-help",
        f"{counted(cells, 'answer fits', 'answers fit')} no choice",
        f"{counted(cells, 'cell')} in {_where(preview, list(blank))}",
        f"{listed(texts)}.",
        Resolution("Treat as blank", treat_as_blank),
        link="Decide one by one",
        columns=tuple(blank),
    )


def _where(preview: Preview, indices: list[int]) -> str:
    if len(indices) == 1:
        return preview.columns[indices[0]].name
    return f"{len(indices)} columns"


def _is_useless(column: ColumnPreview) -> bool:
    return any(problem.kind in ("constant", "many answers") for problem in column.problems)


_USELESS = (
    ("constant", "circle-slash", "says the same of everyone", "say the same of everyone",
     "A question that everybody answers alike says nothing about pairs."),
    ("many answers", "list", "has too many different answers", "have too many different answers",
     "A model learns from at most 15 answers to a question."),
    ("many values", "shield", "has too many values for a rule", "have too many values for a rule",
     "Most students would stay single under such a rule."),
)  # fmt: skip


def _useless(preview: Preview) -> Iterator[Cause]:
    for kind, icon, one, many, why in _USELESS:
        found = [c for c in preview.columns if any(p.kind == kind for p in c.problems)]
        if found:
            indices = [c.index for c in found]
            title = f"{found[0].name} {one}" if len(found) == 1 else f"{len(found)} columns {many}"
            yield Cause(
                kind,
                State.ERROR,
                icon,
                title,
                "" if len(found) == 1 else listed([c.name for c in found], quoted=False),
                why,
                Resolution(f"Ignore {counted(len(found), 'column')}", _ignore(indices)),
                link="Look at it",
                columns=tuple(indices),
            )
    wrong = [c for c in preview.columns if any(p.kind == "not binary" for p in c.problems)]
    if wrong:
        yield Cause(
            "not binary",
            State.ERROR,
            "list",
            f"{counted(len(wrong), 'question is', 'questions are')} not yes or no",
            why=f"{listed([c.name for c in wrong], quoted=False)} can be ordered or not.",
            fix=Resolution("Read as ordered", _as_ordinal([c.index for c in wrong])),
            link="Decide one by one",
            columns=tuple(c.index for c in wrong),
        )


def _ignore(indices: Sequence[int]) -> Act:
    return lambda choices: choices.with_role(list(indices), Role.IGNORE)


def _as_ordinal(indices: Sequence[int]) -> Act:
    def act(choices: Choices) -> Choices:
        for index in indices:
            choices = choices.with_column(index, kind=Kind.ORDINAL)
        return choices

    return act


def _whole(preview: Preview) -> Iterator[Cause]:
    """Yield errors that belong to no column: too few students, no question, two ids."""
    for problem in preview.problems:
        is_of_whole = problem.column is None and problem.row is None and problem.kind != TURNED
        if problem.is_error and is_of_whole:
            ways = [
                Resolution(fix.label, _keep_best(preview, int(fix.meaning)))
                for fix in problem.fixes
                if fix.action == "keep_best"
            ]
            yield Cause(
                f"whole {problem.kind or problem.sentence[:60]}",
                State.ERROR,
                "circle-alert",
                problem.sentence.rstrip("."),
                why=problem.detail,
                fix=ways[0] if ways else None,
                other=ways[1] if len(ways) > 1 else None,
            )


def _keep_best(preview: Preview, count: int) -> Act:
    def act(choices: Choices) -> Choices:
        best = most_telling_questions(preview, count)
        asked = [k for k, c in enumerate(choices.columns) if c.role is Role.QUESTION]
        return choices.with_role(asked, Role.IGNORE).with_role(best, Role.QUESTION)

    return act
