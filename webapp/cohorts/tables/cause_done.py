"""What was done with a file, unasked or by a button, each with its way back; and what to know."""

from collections.abc import Iterator
from dataclasses import replace

from webapp.cohorts.tables.causes import Act, Cause, State, Way, listed
from webapp.cohorts.tables.choices import Choices, Keep, Role
from webapp.cohorts.tables.columns import repeats
from webapp.cohorts.tables.guesses import FREE_TEXT, MAKERS_OWN
from webapp.cohorts.tables.preview import ColumnPreview, Preview
from webapp.cohorts.tables.table import Table
from webapp.common.formats import counted

_WHY_LEFT = {
    "test": ("answers are previews or tests", "Qualtrics marks them; nobody lives like that."),
    "note": ("rows at the foot are no students", "Totals, notes and dates of the export."),
    "no id": ("rows without an id", "Nobody can be told who they are."),
    "unfinished": ("answers were not finished", "Who stopped before the end left the rest blank."),
    "short": ("rows that lack a cell", "Their answers may be in wrong columns."),
    "hand": ("rows by hand", "Somebody left them out one by one."),
}


def done_of(preview: Preview) -> Iterator[Cause]:
    """Return what was done, in the order of rows, columns and cells."""
    yield from _reading(preview)
    yield from _kept(preview)
    yield from _left_rows(preview)
    yield from _makers_columns(preview)
    yield from _free_text(preview)
    yield from _names(preview)
    yield from _made(preview)
    yield from _blanked(preview)


def notes_of(preview: Preview) -> Iterator[Cause]:
    """Return what is worth knowing and stops nothing, one line a kind."""
    kinds = (
        ("blanks", "circle-dashed", "has many blanks", "have many blanks",
         "A blank is a case of its own, never read as an answer."),
        ("one-sided", "circle-dashed", "is answered alike by almost everyone",
         "are answered alike by almost everyone",
         "They can still be learned from; they will separate few pairs."),
        ("alone", "shield", "has a value of one student only", "have values of one student only",
         "Under a rule on such a column that student stays single."),
    )  # fmt: skip
    for kind, icon, one, many, why in kinds:
        found = [c for c in preview.columns if any(p.kind == kind for p in c.problems)]
        if found:
            title = f"{found[0].name} {one}" if len(found) == 1 else f"{len(found)} columns {many}"
            names = "" if len(found) == 1 else listed([c.name for c in found], 4, quoted=False)
            yield Cause(
                f"note {kind}",
                State.NOTE,
                icon,
                title,
                names,
                why,
                link="Look at it" if len(found) == 1 else "Look at the first",
                columns=tuple(c.index for c in found),
            )
    for problem in preview.notes:
        sentence = problem.sentence.rstrip(".")
        yield Cause(f"note {sentence[:40]}", State.NOTE, "info", sentence, why=problem.detail)


def owner(maker: str) -> str:
    """Return "Qualtrics’" or "SurveyMonkey’s"."""
    return f"{maker}’" if maker.endswith("s") else f"{maker}’s"


def _reading(preview: Preview) -> Iterator[Cause]:
    yield from _encoding(preview)
    yield from _header_rows(preview.table)
    yield from _options(preview.table)
    yield from _header(preview.table)


def _encoding(preview: Preview) -> Iterator[Cause]:
    table = preview.table
    if table.encoding == "Windows-1252":
        beyond = [w for name in (*table.header, *_texts(preview)) for w in name.split()]
        words = list(dict.fromkeys(word for word in beyond if not word.isascii()))
        yield Cause(
            "encoding",
            State.DONE,
            "file-text",
            "The file is read as Western European text",
            why=f"It holds {listed(words)}. If they look wrong, save it as “CSV UTF-8”.",
            done="Read",
        )


def _header_rows(table: Table) -> Iterator[Cause]:
    layout = table.layout
    if table.n_header_rows:
        rows = [n for n in (layout.wording_row, *layout.extra_rows) if n]
        spoken = counted(len(rows), "header row is", "header rows are")
        yield Cause(
            "header rows",
            State.DONE,
            "table",
            f"{spoken} {owner(layout.maker)} own",
            f"row {rows[0]}" if len(rows) == 1 else f"rows {' and '.join(map(str, rows))}",
            "The question texts are kept as long names." if table.wordings else "",
            done="Left out",
            link="Choose the header",
        )


def _options(table: Table) -> Iterator[Cause]:
    for group in table.options:
        yield Cause(
            f"options {group.positions[0]}",
            State.DONE,
            "table",
            f"One question stands in {len(group.positions)} columns, one an option",
            listed(list(group.options)),
            "Who chose another option said No; who chose none is a blank.",
            done="Read",
            link="Look at the first",
            columns=group.positions,
        )


def _header(table: Table) -> Iterator[Cause]:
    if table.n_above:
        where = f"sheet {table.sheet_name}, " if table.sheet_name else ""
        yield Cause(
            "above",
            State.DONE,
            "table",
            f"Row {table.layout.header_row} is the header",
            f"{where}{counted(table.n_above, 'row')} above it",
            "What stands above the header is a title or a note.",
            done="Left out",
            link="Choose another",
        )
    elif table.sheet_name:
        yield Cause(
            "sheet",
            State.DONE,
            "table",
            f"The answers are on the sheet {table.sheet_name}",
            why="The other sheets hold less below a header.",
            done="Found",
            link="Choose another",
        )


def _texts(preview: Preview) -> list[str]:
    return [text for column in preview.columns for text in column.examples]


def _kept(preview: Preview) -> Iterator[Cause]:
    if preview.choices.keep is Keep.ALL:
        return
    found = repeats(preview.table, preview.choices)
    extra = sum(len(rows) for rows in found.values()) - len(found)
    yield Cause(
        "kept",
        State.DONE,
        "users",
        f"{counted(len(found), 'person', 'people')} answered more than once",
        counted(extra, "further row"),
        f"The {preview.choices.keep.value} answer of each counts.",
        other=Way("Undo", lambda choices: replace(choices, keep=Keep.ALL)),
        done="Left out",
    )


def _left_rows(preview: Preview) -> Iterator[Cause]:
    for why, (title, detail) in _WHY_LEFT.items():
        rows = sorted(n for n, reason in preview.choices.left_out.items() if reason == why)
        if rows:
            yield Cause(
                f"left {why}",
                State.DONE,
                "table",
                f"{len(rows):,} {title}" if len(rows) > 1 else f"1 row: {title}",
                listed([f"row {n:,}" for n in rows], quoted=False),
                detail,
                other=Way("Undo", lambda choices, why=why: choices.with_rows_of(why)),  # type: ignore[misc]
                done="Left out",
            )


def _makers_columns(preview: Preview) -> Iterator[Cause]:
    own = [c for c in preview.columns if c.choice.reason == MAKERS_OWN]
    left = [c for c in own if c.choice.role is Role.IGNORE]
    maker = preview.table.layout.maker
    if left:
        yield Cause(
            "maker",
            State.DONE,
            "eye-off",
            f"{counted(len(left), 'column is', 'columns are')} {owner(maker)} own",
            listed([c.header for c in left], 4, quoted=False),
            "They can identify people and are not stored.",
            done="Left out",
            link="Look at them",
            columns=tuple(c.index for c in left),
        )


def _free_text(preview: Preview) -> Iterator[Cause]:
    free = [c for c in preview.columns if _is_free_text(c)]
    if free:
        one, many = f"{free[0].name} is free text", f"{len(free)} columns are free text"
        answers = sum(preview.n_students - c.n_blank for c in free)
        yield Cause(
            "free text",
            State.DONE,
            "file-text",
            one if len(free) == 1 else many,
            counted(answers, "answer"),
            "It is never scored, and not stored.",
            done="Left out",
            link="Look at it",
            columns=tuple(c.index for c in free),
        )


def _is_free_text(column: ColumnPreview) -> bool:
    return column.choice.role is Role.IGNORE and column.choice.reason == FREE_TEXT


def _names(preview: Preview) -> Iterator[Cause]:
    named = [c for c in preview.columns if c.choice.name and c.header]
    if not named:
        return

    def undo(choices: Choices) -> Choices:
        for column in named:
            choices = choices.with_column(column.index, name="")
        return choices

    yield Cause(
        "names",
        State.DONE,
        "list",
        f"{counted(len(named), 'column has', 'columns have')} a short name",
        listed([c.name for c in named], 4, quoted=False),
        "The text of the question stays beside it.",
        other=Way("Undo", undo),
        done="Named",
    )


def _made(preview: Preview) -> Iterator[Cause]:
    """Columns that were split or grouped, and questions that became rules by a button."""
    parents = {c.choice.part.parent for c in preview.columns if c.choice.part is not None}
    for index in sorted(parents):
        made = [c for c in preview.columns if c.choice.part and c.choice.part.parent == index]
        yield Cause(
            f"made {index}",
            State.DONE,
            "split",
            f"{preview.columns[index].name} is split into {len(made)} yes or no",
            listed([c.name for c in made], 4, quoted=False),
            "Each says whether somebody chose it.",
            other=Way("Undo", lambda choices, index=index: choices.without_parts(index)),  # type: ignore[misc]
            done="Split",
        )
    for column in preview.columns:
        if column.choice.groups and column.choice.role is not Role.IGNORE:
            yield Cause(
                f"made groups {column.index}",
                State.DONE,
                "bar-chart-3",
                f"{column.name} is read in {len(column.choice.levels)} groups",
                listed(column.choice.levels, 5, quoted=False),
                "",
                other=Way("Undo", _ungroup(column.index)),
                done="Grouped",
                link="Move the borders",
                columns=(column.index,),
            )


def _ungroup(index: int) -> Act:
    def act(choices: Choices) -> Choices:
        choices = choices.with_column(index, groups=None, levels=())
        return choices.with_role([index], Role.IGNORE)

    return act


def _blanked(preview: Preview) -> Iterator[Cause]:
    blanked = {
        index: [said for said, means in column.items() if means == ""]
        for index, column in preview.choices.meanings.items()
    }
    texts = [text for said in blanked.values() for text in said]
    if not texts:
        return

    def undo(choices: Choices) -> Choices:
        meanings = {
            index: {said: means for said, means in column.items() if means != ""}
            for index, column in choices.meanings.items()
        }
        return replace(choices, meanings=meanings)

    yield Cause(
        "blanked",
        State.DONE,
        "circle-help",
        f"{counted(len(texts), 'text counts', 'texts count')} as a blank",
        why=f"{listed(texts)}.",
        other=Way("Undo", undo),
        done="Blank",
    )
