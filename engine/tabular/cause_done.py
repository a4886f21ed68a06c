"""Changes made to a file, automatically or by a button, each with its undo; and notes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.tabular.causes import GARBLED, Act, Cause, Resolution, State
from engine.tabular.choices import Choices, Keep, Role
from engine.tabular.facts import facts_of
from engine.tabular.garbled import repaired
from engine.tabular.guesses import FREE_TEXT, MAKERS_OWN, with_guessed_order
from engine.tabular.makers import SOME_PROGRAM
from engine.tabular.preview import ColumnPreview, Preview
from engine.tabular.student_files import apart_columns, request_columns
from engine.tabular.table import Table
from engine.tabular.words import counted, listed

_WHY_LEFT = {
    "test": ("answers are previews or tests", "Qualtrics marks them; nobody lives like that."),
    "note": ("rows at the foot are no students", "Totals, notes and dates of the export."),
    "no id": ("rows without an id", "Their rows name no student."),
    "unfinished": (
        "answers were not finished",
        "People who stopped before the end left the rest blank.",
    ),
    "short": ("rows that lack a cell", "Their answers may be in wrong columns."),
    "header": ("rows repeat the header", "Files that were pasted together bring it along."),
    "hidden": ("rows are hidden in the file", "A filter hid them, or somebody did."),
    "event": ("rows are of other events", "One event of each record counts."),
    "hand": ("rows by hand", "Somebody left them out one by one."),
}


def done_of(preview: Preview) -> Iterator[Cause]:
    """Return the changes made, in the order of rows, columns and cells."""
    yield from _reading(preview)
    yield from _kept(preview)
    yield from _left_rows(preview)
    yield from _makers_columns(preview)
    yield from _free_text(preview)
    yield from _needs(preview)
    yield from _names(preview)
    yield from _made(preview)
    yield from _restored(preview)
    yield from _repaired(preview)
    yield from _declined(preview)
    yield from _blanked(preview)


def requests_in(preview: Preview) -> list[ColumnPreview]:
    """Return the columns that are left out and in which students name requested roommates."""
    return [preview.columns[k] for k in request_columns(preview.table, _unused(preview))]


def _unused(preview: Preview) -> list[int]:
    return [
        column.index
        for column in preview.columns[: preview.table.n_columns]
        if column.choice.role is Role.IGNORE and column.choice.reason != MAKERS_OWN
    ]


def _requests(preview: Preview) -> Iterator[Cause]:
    for column in requests_in(preview):
        yield _note_of_people(
            preview,
            column,
            f"requests {column.index}",
            f"{column.name} names roommates. Keep as requests?",
            "They are never scored. Choose “Keep as requests” when you import the students.",
        )


def _apart(preview: Preview) -> Iterator[Cause]:
    for index in apart_columns(preview.table, _unused(preview), lambda text: ()):
        column = preview.columns[index]
        yield _note_of_people(
            preview,
            column,
            f"apart {index}",
            f"“{column.name}” names people to keep apart",
            "They are no requests, and not stored. Keep them apart in the rules of a placement.",
        )


def _note_of_people(
    preview: Preview, column: ColumnPreview, key: str, title: str, why: str
) -> Cause:
    """Return the note on a column in which students name other people."""
    return Cause(
        key,
        State.NOTE,
        "users",
        title,
        counted(preview.n_students - column.n_blank, "answer"),
        why,
        link="Look at it",
        columns=(column.index,),
    )


def notes_of(preview: Preview) -> Iterator[Cause]:
    """Return the notes: facts that do not stop the import, one line per kind."""
    yield from _requests(preview)
    yield from _apart(preview)
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
    """Return the possessive of a survey program's name: "Qualtrics’" or "SurveyMonkey’s"."""
    maker = maker or SOME_PROGRAM
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
    if layout.joined_rows:
        rows = [*layout.joined_rows, layout.header_row]
        yield Cause(
            "joined header",
            State.DONE,
            "table",
            f"The header stands in {len(rows)} rows",
            f"rows {listed([str(n) for n in rows], quoted=False)}",
            "Merged cells above the names of columns say what they have in common.",
            done="Joined",
            link="Choose the header",
        )
    rows = [n for n in (layout.wording_row, *layout.extra_rows) if n]
    if rows and not layout.maker:
        kept = "Its texts are kept as long names. " if layout.wording_row else ""
        yield Cause(
            "second header",
            State.DONE,
            "table",
            f"Row {rows[0]} names the columns too",
            f"as row {layout.header_row} does",
            f"{kept}If it is a student, choose row {layout.header_row} as the header.",
            done="Left out",
            link="Choose the header",
        )
    elif rows:
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
            "People who chose another option count as No; people who chose no option are blank.",
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
            "Rows above the header are a title or a note.",
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
    found = preview.chosen.repeats
    extra = sum(len(rows) for rows in found.values()) - len(found)
    yield Cause(
        "kept",
        State.DONE,
        "users",
        f"{counted(len(found), 'person', 'people')} answered more than once",
        counted(extra, "further row"),
        "Their rows hold different questions and are read as one."
        if preview.choices.keep is Keep.JOINED
        else f"The {preview.choices.keep.value} answer of each counts.",
        other=Resolution("Undo", lambda choices: replace(choices, keep=Keep.ALL)),
        done="Joined" if preview.choices.keep is Keep.JOINED else "Left out",
    )


def _left_rows(preview: Preview) -> Iterator[Cause]:
    for why, (title, detail) in _WHY_LEFT.items():
        rows = sorted(n for n, reason in preview.choices.left_out.items() if reason == why)
        if rows:
            yield Cause(
                f"left {why}",
                State.DONE,
                "table",
                f"{len(rows):,} {title}" if len(rows) > 1 else _one(title),
                listed([f"row {n:,}" for n in rows], quoted=False),
                detail,
                other=Resolution("Undo", lambda choices, why=why: choices.with_rows_of(why)),  # type: ignore[misc]
                done="Left out",
            )


def _one(title: str) -> str:
    """Return a title for one row: "1 row repeats the header" for "rows repeat the header"."""
    verbs = {"rows are ": "1 row is ", "rows repeat ": "1 row repeats "}
    for many, one in verbs.items():
        if title.startswith(many):
            return one + title.removeprefix(many).replace("other events", "another event")
    return f"1 row: {title}"


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


def _needs(preview: Preview) -> Iterator[Cause]:
    needs = preview.columns_as(Role.NEED)
    if needs:
        one, many = f"{needs[0].name} is a need", f"{len(needs)} columns are needs"
        people = sum(preview.n_students - c.n_blank for c in needs)
        yield Cause(
            "needs",
            State.DONE,
            "shield",
            one if len(needs) == 1 else many,
            counted(people, "answer"),
            "A student with a need gets only rooms that meet it. Needs are never scored.",
            done="Need",
            link="Look at it",
            columns=tuple(c.index for c in needs),
        )


def _names(preview: Preview) -> Iterator[Cause]:
    named = [
        c for c in preview.columns
        if c.choice.name and c.header and c.choice.name != repaired(c.header)
    ]  # fmt: skip
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
        other=Resolution("Undo", undo),
        done="Named",
    )


def _made(preview: Preview) -> Iterator[Cause]:
    """Yield split or grouped columns, and questions that a button made into rules."""
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
            other=Resolution("Undo", lambda choices, index=index: choices.without_parts(index)),  # type: ignore[misc]
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
                other=Resolution("Undo", _ungroup(column.index)),
                done="Grouped",
                link="Move the borders",
                columns=(column.index,),
            )


def _ungroup(index: int) -> Act:
    def act(choices: Choices) -> Choices:
        choices = choices.with_column(index, groups=None, levels=())
        return choices.with_role([index], Role.IGNORE)

    return act


def _restored(preview: Preview) -> Iterator[Cause]:
    """Yield the ranges restored from dates that a spreadsheet had made of them."""
    for column in preview.columns[: preview.table.n_columns]:
        meant = preview.choices.meanings.get(column.index, {})
        made = {
            cell: typed
            for cell, typed in facts_of(preview.table)[column.index].made_dates.items()
            if meant.get(cell) == typed
        }
        if made:
            yield Cause(
                f"restored {column.index}",
                State.DONE,
                "circle-alert",
                f"{column.name} has its ranges again",
                listed(list(made.values()), 6, quoted=False),
                "Excel had made dates of them.",
                other=Resolution("Undo", _without(column.index, list(made))),
                done="Restored",
                link="Look at it",
                columns=(column.index,),
            )


def _without(index: int, cells: Sequence[str]) -> Act:
    return lambda choices: choices.without_meanings(index, cells)


def _repaired(preview: Preview) -> Iterator[Cause]:
    """Yield garbled letters that were repaired."""
    found = {
        column.index: cells
        for column in preview.columns[: preview.table.n_columns]
        if (cells := _repaired_cells(preview, column.index))
    }
    named = [
        c.index
        for c in preview.columns
        if c.choice.name and c.header and c.choice.name == repaired(c.header) != c.header
    ]
    if not found and not named:
        return

    def undo(choices: Choices) -> Choices:
        for index, cells in found.items():
            choices = choices.without_meanings(index, cells)
        for index in named:
            choices = choices.with_column(index, name="")
        return choices.reopen(GARBLED)

    texts = [cell for cells in found.values() for cell in cells]
    yield Cause(
        "repaired",
        State.DONE,
        "file-text",
        f"{counted(len(texts) + len(named), 'text is', 'texts are')} read with the right letters",
        why=f"{listed([repaired(text) for text in texts])}.",
        other=Resolution("Undo", undo),
        done="Repaired",
    )


def _repaired_cells(preview: Preview, index: int) -> list[str]:
    meant = preview.choices.meanings.get(index, {})
    return [said for said, means in meant.items() if means and means == repaired(said) != said]


def _declined(preview: Preview) -> Iterator[Cause]:
    """Yield answers that decline to answer; they count as blanks of their question."""
    found = {
        column.index: cells
        for column in preview.columns_as(Role.QUESTION)
        if (cells := _declined_cells(preview, column))
    }
    if not found:
        return

    def undo(choices: Choices) -> Choices:
        for index, cells in found.items():
            choices = choices.without_meanings(index, cells)
            levels = choices.columns[index].levels
            levels += tuple(cell for cell in cells if cell not in levels)
            choices = with_guessed_order(choices, index, levels)
        return choices

    texts = list(dict.fromkeys(cell for cells in found.values() for cell in cells))
    count = sum(preview.table.answers(k)[cell] for k, cells in found.items() for cell in cells)
    yield Cause(
        "declined",
        State.DONE,
        "circle-dashed",
        f"{listed(texts, 2)} count{'s' if len(texts) == 1 else ''} as a blank",
        counted(count, "cell"),
        "Somebody who does not say is on no scale.",
        other=Resolution("Count as an answer", undo),
        done="Blank",
        link="Look at it",
        columns=tuple(found),
    )


def _declined_cells(preview: Preview, column: ColumnPreview) -> list[str]:
    if column.index >= preview.table.n_columns:
        return []
    meant = preview.choices.meanings.get(column.index, {})
    declined = facts_of(preview.table)[column.index].declined
    return [cell for cell in declined if meant.get(cell) == ""]


def _blanked(preview: Preview) -> Iterator[Cause]:
    blanked = {
        index: [
            said
            for said, means in column.items()
            if means == "" and said not in _declined_cells(preview, preview.columns[index])
        ]
        for index, column in preview.choices.meanings.items()
    }
    texts = [text for said in blanked.values() for text in said]
    if not texts:
        return

    def undo(choices: Choices) -> Choices:
        for index, said in blanked.items():
            choices = choices.without_meanings(index, said)
        return choices

    yield Cause(
        "blanked",
        State.DONE,
        "circle-help",
        f"{counted(len(texts), 'text counts', 'texts count')} as a blank",
        why=f"{listed(texts)}.",
        other=Resolution("Undo", undo),
        done="Blank",
    )
