"""The causes that stop an import."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from webapp.cohorts.tables.causes import Act, Cause, Sample, State, Way, listed
from webapp.cohorts.tables.choices import Choices, Keep, Kind, Role
from webapp.cohorts.tables.columns import latest_of, repeats, time_column
from webapp.cohorts.tables.preview import ColumnPreview, Preview, most_telling_questions
from webapp.common.formats import counted

_COMPARED = 300  # people whose rows are compared to say in how much they differ


def errors_of(preview: Preview) -> Iterator[Cause]:
    """Return what stops the import, what concerns most rows first."""
    yield from _repeats(preview)
    yield from _blank_ids(preview)
    yield from _unknown(preview)
    yield from _useless(preview)
    yield from _whole(preview)


def _repeats(preview: Preview) -> Iterator[Cause]:
    if preview.choices.keep is not Keep.ALL:
        return
    found = repeats(preview.table, preview.choices)
    if not found:
        return
    extra = sum(len(rows) for rows in found.values()) - len(found)
    people = counted(len(found), "person", "people")
    has_times = time_column(preview.table) is not None
    yield Cause(
        "repeats",
        State.ERROR,
        "users",
        f"{people} answered more than once",
        counted(extra, "further row"),
        f"{_differences(preview, list(found.values()))} An id can stand for one person only.",
        Way(
            "Keep the latest of each" if has_times else "Keep the last row of each",
            _keep(Keep.LATEST),
        ),
        Way("Keep the first of each", _keep(Keep.FIRST)),
        columns=tuple(c.index for c in preview.columns_as(Role.ID)),
        samples=tuple(_repeat_sample(preview, rows) for rows in list(found.values())[:2]),
    )


def _keep(keep: Keep) -> Act:
    return lambda choices: replace(choices, keep=keep)


def _differences(preview: Preview, people: list[list[int]]) -> str:
    """Say in how many answers the rows of one person differ."""
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
    kept = latest_of(table, positions)
    times = time_column(table)

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
                if not cell and number not in preview.dropped
            ]
            yield Cause(
                "blank ids",
                State.ERROR,
                "circle-help",
                f"{counted(len(rows), 'row has', 'rows have')} no {column.name}",
                why="Without an id nobody can be told from another, or given a room.",
                fix=Way(
                    f"Leave out {counted(len(rows), 'row')}",
                    lambda choices, rows=rows: choices.without_rows(rows, "no id"),  # type: ignore[misc]
                ),
                link="Choose another id",
                columns=(column.index,),
            )


def _unknown(preview: Preview) -> Iterator[Cause]:
    wrong = [c for c in preview.columns_as(Role.QUESTION) if c.unknown and not _is_useless(c)]
    if not wrong:
        return
    cells = sum(n for column in wrong for _, n in column.unknown)
    texts = list(dict.fromkeys(text for column in wrong for text, _ in column.unknown))
    where = wrong[0].name if len(wrong) == 1 else f"{len(wrong)} columns"

    def blank(choices: Choices) -> Choices:
        meanings = dict(choices.meanings)
        for column in wrong:
            own = dict(meanings.get(column.index, {}))
            meanings[column.index] = own | {text: "" for text, _ in column.unknown}
        return replace(choices, meanings=meanings)

    yield Cause(
        "unknown answers",
        State.ERROR,
        "circle-help",
        f"{counted(cells, 'answer fits', 'answers fit')} no choice",
        f"{counted(cells, 'cell')} in {where}",
        f"{listed(texts)}.",
        Way("Treat as blank", blank),
        link="Decide one by one",
        columns=tuple(column.index for column in wrong),
    )


def _is_useless(column: ColumnPreview) -> bool:
    return any(problem.kind in ("constant", "many answers") for problem in column.problems)


_USELESS = (
    ("constant", "circle-slash", "says the same of everyone", "say the same of everyone",
     "What all answer alike tells no pair from another."),
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
                Way(f"Ignore {counted(len(found), 'column')}", _ignore(indices)),
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
            fix=Way("Read as ordered", _as_ordinal([c.index for c in wrong])),
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
    """What belongs to no column: too few students, no question, two ids."""
    for problem in preview.problems:
        if problem.is_error and problem.column is None and problem.row is None:
            ways = [
                Way(fix.label, _keep_best(preview, int(fix.meaning)))
                for fix in problem.fixes
                if fix.action == "keep_best"
            ]
            yield Cause(
                f"whole {problem.sentence[:60]}",
                State.ERROR,
                "circle-alert",
                problem.sentence.rstrip("."),
                why=problem.detail,
                fix=ways[0] if ways else None,
                other=ways[1] if len(ways) > 1 else None,
            )


def _keep_best(preview: Preview, count: int) -> Act:
    def act(choices: Choices) -> Choices:
        best = most_telling_questions(replace(preview, choices=choices), count)
        asked = [k for k, c in enumerate(choices.columns) if c.role is Role.QUESTION]
        return choices.with_role(asked, Role.IGNORE).with_role(best, Role.QUESTION)

    return act
