"""Proposals for a file beyond its plain questions: rules, yes-or-no columns, groups."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.tabular.causes import GARBLED, GROUPED_FROM, Act, Cause, Resolution, Sample, State
from engine.tabular.choices import Choices, ColumnChoice, Keep, Kind, Role
from engine.tabular.facts import facts_of
from engine.tabular.garbled import repaired, repairs
from engine.tabular.guesses import MAKERS_OWN, with_guessed_order
from engine.tabular.id_column import is_response_id
from engine.tabular.makers import SOME_PROGRAM
from engine.tabular.multiple_answers import REST, Part, Several, split_cell
from engine.tabular.numerals import Groups, suggest_groups
from engine.tabular.preview import ColumnPreview, Preview
from engine.tabular.responses import responses_of
from engine.tabular.rule_columns import NEED, rule_of
from engine.tabular.scales import LANGUAGES, rank_answers
from engine.tabular.short_names import short_names
from engine.tabular.table import Table
from engine.tabular.text import fold_answer
from engine.tabular.words import counted, listed

_MEASURED = ("age", "height", "weight", "gpa", "income", "bmi")  # facts, not habits


def proposals_of(preview: Preview) -> Iterator[Cause]:
    """Return the proposals that staff have neither used nor declined."""
    found = [
        *_garbled(preview),
        *_hidden(preview),
        *_unfinished(preview),
        *_capitals(preview),
        *_short_rows(preview),
        *_grouped(
            preview, list(_rules(preview)), "rule", "columns read like rules", "Use as rules"
        ),
        *_grouped(
            preview, list(_several(preview)), "split",
            "columns hold several answers in a cell", "Split into yes or no",
        ),
        *_grouped(
            preview, list(_numbers(preview)), "groups", "columns are numbers", "Make groups in all"
        ),
        *_spellings(preview),
        *_languages(preview),
    ]  # fmt: skip
    return (cause for cause in found if cause.key not in preview.choices.settled)


def _grouped(
    preview: Preview, causes: list[Cause], key: str, words: str, label: str
) -> list[Cause]:
    """Return the causes, or one for all of them if they would fill a page."""
    causes = [cause for cause in causes if cause.key not in preview.choices.settled]
    if len(causes) < GROUPED_FROM:
        return causes
    columns = tuple(column for cause in causes for column in cause.columns)
    names = [preview.columns[column].name for column in columns]

    def all_of_them(choices: Choices) -> Choices:
        for cause in causes:
            choices = cause.fix.act(choices) if cause.fix else choices
        return choices

    keys = [cause.key for cause in causes]
    return [
        Cause(
            f"all {key}",
            State.PROPOSAL,
            causes[0].icon,
            f"{len(causes)} {words}",
            why=f"{listed(names, 5, quoted=False)}.",
            fix=Resolution(label, all_of_them),
            other=Resolution("Leave them as they are", lambda choices: choices.settle(*keys)),
            columns=columns,
        )
    ]


def _decline(key: str) -> Act:
    return lambda choices: choices.settle(key)


def _of_file(preview: Preview) -> Iterator[ColumnPreview]:
    """Yield the columns of the file that belong to the survey itself."""
    for column in preview.columns[: preview.table.n_columns]:
        if column.choice.reason != MAKERS_OWN and column.choice.role is not Role.ID:
            yield column


def _rules(preview: Preview) -> Iterator[Cause]:
    for column in _of_file(preview):
        counter = preview.table.answers(column.index)
        is_mark = column.choice.role is Role.IGNORE and len(counter) == 1  # a yes or a blank
        if column.choice.role is not Role.QUESTION and not is_mark:
            continue
        rule = rule_of(column.header, column.wording, counter)
        if not rule:
            continue
        is_need = rule == NEED
        what, leave = "a need" if is_need else "a rule", "out" if is_mark else "as a question"
        scored = "A column left out is not read." if is_mark else "A question is scored."
        decides = "need decides which rooms a person may have" if is_need else (
            "rule decides who may share a room"
        )  # fmt: skip
        yield Cause(
            f"rule {column.header}",
            State.PROPOSAL,
            "shield",
            f"{column.name} reads like {what}",
            "1 column",
            f"{scored} A {decides}.",
            Resolution(
                f"Use as a {'need' if is_need else f'rule: same {rule}'}",
                _as_rule(column.index, is_need=is_need),
            ),
            Resolution(f"Leave {leave}", _decline(f"rule {column.header}")),
            columns=(column.index,),
            samples=tuple(
                Sample(more=f"{value[:30]} {times:,}") for value, times in counter.most_common(5)
            ),
        )


def _as_rule(index: int, *, is_need: bool) -> Act:
    role = Role.NEED if is_need else Role.CONSTRAINT
    return lambda choices: choices.with_role([index], role)


def _several(preview: Preview) -> Iterator[Cause]:
    parents = {c.choice.part.parent for c in preview.columns if c.choice.part is not None}
    for column in _of_file(preview):
        several = facts_of(preview.table)[column.index].several
        if several is None or column.index in parents:
            continue
        if column.choice.role not in (Role.IGNORE, Role.QUESTION):
            continue
        options = _options(several)
        cell = next(
            c for c in preview.table.answers(column.index)
            if len(split_cell(c, several.separator, several.options)) > 1
        )  # fmt: skip
        chosen = split_cell(cell, several.separator, several.options)
        rest = len(options) - min(3, len(chosen))
        yield Cause(
            f"split {column.header}",
            State.PROPOSAL,
            "split",
            f"{column.name} holds several answers in a cell",
            counted(several.n_multiple, "cell"),
            f"{counted(len(several.options), 'different answer')}, separated by "
            f"{several.separator.removeprefix('tight ').removeprefix('any ')}.",
            Resolution(
                f"Split into {len(options)} yes or no", split_column(preview.table, column.index)
            ),
            Resolution("Leave it out", _decline(f"split {column.header}")),
            columns=(column.index,),
            samples=(
                Sample(
                    before=cell[:60],
                    after=tuple(f"{option[:24]} yes" for option in chosen[:3]),
                    more=f"{rest} more" if rest > 0 else "",
                ),
            ),
        )


def _options(several: Several) -> tuple[str, ...]:
    return (*several.options, REST) if several.has_rest else several.options


def split_column(table: Table, index: int) -> Act:
    """Return the action that makes a yes-or-no column of every option of a column."""
    several = facts_of(table)[index].several

    def act(choices: Choices) -> Choices:
        if several is None:
            return choices
        options = _options(several)
        taken = [c.name or table.header[k] for k, c in enumerate(choices.columns)]
        names = short_names([_spoken(table, index, option) for option in options], taken)
        parts = []
        for option, name in zip(options, names, strict=True):
            part = Part(index, several.separator, option, several.options)
            answers = {part.answer(cell) for cell in table.answers(index)}
            role = Role.QUESTION if len(answers) == 2 else Role.IGNORE
            reason = f"One of {len(options)} answers that can be given together."
            parts.append(
                ColumnChoice(role, Kind.BINARY, ("No", "Yes"), reason, name=name, part=part)
            )
        return choices.with_parts(index, parts)

    return act


def _spoken(table: Table, index: int, option: str) -> str:
    """Return the label of an option: a code alone means nothing without its question."""
    name = repaired(option)
    is_bare = len(name) <= 2 or name.isdecimal()
    return f"{facts_of(table)[index].title} {name}" if is_bare else name


def _numbers(preview: Preview) -> Iterator[Cause]:
    for column in _of_file(preview):
        facts = facts_of(preview.table)[column.index]
        style = facts.numbers
        if (
            style is None
            or is_response_id(facts)
            or column.choice.groups
            or column.choice.role is not Role.IGNORE
        ):
            continue
        said = f"{column.name} {column.wording}".casefold().split()
        if any(word.strip("?.,():") in _MEASURED for word in said):
            continue
        groups = suggested(preview.table, column.index)
        if groups is None:
            continue
        sizes = group_sizes(preview.table, column.index, groups)
        unit = f" {style.unit}" if style.unit else ""
        what = "a time of day" if style.is_clock else "a number"
        yield Cause(
            f"groups {column.header}",
            State.PROPOSAL,
            "bar-chart-3",
            f"{column.name} is {what}",
            f"{column.n_distinct:,} values",
            f"A model needs groups with enough people in each: {min(n for _, n in sizes):,} to "
            f"{max(n for _, n in sizes):,} people a group{unit and f', in{unit}'}.",
            Resolution(f"Make {len(sizes)} groups", group_column(column.index, groups)),
            Resolution("Leave it out", _decline(f"groups {column.header}")),
            link="Move the borders",
            columns=(column.index,),
            bars=tuple(sizes),
        )


def suggested(table: Table, index: int) -> Groups | None:
    """Return the proposed groups for a column of numbers."""
    key = ("suggested", index)
    if key not in table.memo:
        style = facts_of(table)[index].numbers
        cells = list(table.answers(index).elements())
        table.memo[key] = suggest_groups(cells, style) if style else None
    found: Groups | None = table.memo[key]
    return found


def group_sizes(table: Table, index: int, groups: Groups) -> list[tuple[str, int]]:
    """Return the groups of a column of numbers with their row counts, in order."""
    times: Counter[str] = Counter()
    for cell, count in table.answers(index).items():
        times[groups.level_of(cell)] += count
    return [(level, times[level]) for level in groups.levels]


def group_column(index: int, groups: Groups) -> Act:
    """Return the action that reads the numbers of a column as groups, in order."""
    kind = Kind.BINARY if len(groups.levels) == 2 else Kind.ORDINAL

    def act(choices: Choices) -> Choices:
        choices = choices.with_column(index, groups=groups, kind=kind, levels=groups.levels)
        return choices.with_role([index], Role.QUESTION)

    return act


def _spellings(preview: Preview) -> Iterator[Cause]:
    meant: list[tuple[int, str, str]] = []
    for column in preview.columns:
        for problem in column.problems:
            if problem.kind == "spelling":
                meant += [(column.index, fix.answer, fix.meaning) for fix in problem.fixes]
    if not meant:
        return
    columns = tuple(dict.fromkeys(index for index, _, _ in meant))
    names = [preview.columns[index].name for index in columns]
    yield Cause(
        "spellings",
        State.PROPOSAL,
        "list",
        f"{counted(len(meant), 'answer is', 'answers are')} written in several ways",
        listed(names, quoted=False),
        "They differ only in capitals, spaces, quotes, dashes or widths of letters, "
        "or one is short for the other.",
        Resolution("Count as one", _count_as_one(meant)),
        Resolution("They are different", _decline("spellings")),
        columns=columns,
        samples=tuple(
            Sample(before=said[:30], after=(means[:30],)) for _, said, means in meant[:3]
        ),
        is_doubt=True,
    )


def _count_as_one(meant: Sequence[tuple[int, str, str]]) -> Act:
    """Return the action that reads some answers as others, and orders the answers again."""

    def act(choices: Choices) -> Choices:
        for index, said, means in meant:
            choices = choices.with_meaning(index, said, means)
        for index in dict.fromkeys(index for index, _, _ in meant):
            own = choices.meanings[index]
            column = choices.columns[index]
            levels = tuple(dict.fromkeys(own.get(level, level) for level in column.levels))
            levels = tuple(level for level in levels if level)
            if column.kind is Kind.NOMINAL:  # with fewer spellings an order may show
                choices = with_guessed_order(choices, index, levels)
            else:
                choices = choices.with_column(index, levels=levels)
        return choices

    return act


def _languages(preview: Preview) -> Iterator[Cause]:
    """Yield answers that mean the same in several languages."""
    for column in preview.columns_as(Role.QUESTION):
        counts = dict(column.level_rows)
        folded = {fold_answer(level) for level in counts}
        ranking = rank_answers(counts) if 2 < len(counts) == len(folded) else None
        if ranking is None or not ranking.same:
            continue
        rows = {
            language: sum(n for x, n in counts.items() if language in ranking.places[x].languages)
            for language in LANGUAGES
        }
        own = max(LANGUAGES, key=lambda language: rows[language])
        meant = []
        for group in ranking.same:
            kept = next((x for x in group if own in ranking.places[x].languages), group[0])
            meant += [(column.index, level, kept) for level in group if level != kept]
        key = f"languages {column.header}"
        yield Cause(
            key,
            State.PROPOSAL,
            "list",
            f"{column.name} is answered in several languages",
            counted(len(meant), "answer says what another says",
                    "answers say what others say"),
            f"{listed([said for _, said, _ in meant], 5)} count as different answers.",
            Resolution("Count as one", _count_as_one(meant)),
            Resolution("They are different", _decline(key)),
            columns=(column.index,),
            samples=tuple(
                Sample(before=said[:30], after=(means[:30],)) for _, said, means in meant[:3]
            ),
            is_doubt=True,
        )  # fmt: skip


def _garbled(preview: Preview) -> Iterator[Cause]:
    """Yield garbled letters: the file was saved after being read in the wrong code page."""
    table, meanings = preview.table, preview.choices.meanings
    found: dict[int, dict[str, str]] = {}
    for index in range(table.n_columns):
        cells = repairs(cell for cell in table.answers(index) if not cell.isascii())
        cells = {cell: good for cell, good in cells.items() if cell not in meanings.get(index, {})}
        if cells:
            found[index] = cells
    names = repairs(title for title in table.header if not title.isascii())
    names = {
        title: good for title, good in names.items()
        if preview.columns[table.header.index(title)].name == title
    }  # fmt: skip
    if not found and not names:
        return
    examples = [*names.items(), *(one for cells in found.values() for one in cells.items())]
    n_cells = sum(table.answers(index)[cell] for index, cells in found.items() for cell in cells)

    def repair(choices: Choices) -> Choices:
        for title, good in names.items():
            choices = choices.with_column(table.header.index(title), name=good[:60])
        for index, cells in found.items():
            choices = _count_as_one([(index, cell, good) for cell, good in cells.items()])(choices)
        return choices

    said, good = examples[0]
    yield Cause(
        GARBLED,
        State.PROPOSAL,
        "file-text",
        f"Letters are garbled: “{said[:30]}” was “{good[:30]}”",
        counted(n_cells, "cell") if n_cells else counted(len(names), "title"),
        "The file was opened in the wrong encoding and saved so.",
        Resolution("Repair the letters", repair),
        Resolution("They are right", _decline(GARBLED)),
        columns=tuple(found),
        samples=tuple(Sample(before=bad[:30], after=(ok[:30],)) for bad, ok in examples[:3]),
        is_doubt=True,
    )


def _hidden(preview: Preview) -> Iterator[Cause]:
    """Yield rows and columns that a spreadsheet hides."""
    table = preview.table
    rows = [n for n in table.hidden_rows if n not in preview.dropped]
    if rows:
        yield Cause(
            "hidden rows",
            State.PROPOSAL,
            "eye-off",
            f"{counted(len(rows), 'row is', 'rows are')} hidden in the file",
            listed([f"row {n:,}" for n in rows], quoted=False),
            "A filter hides them, or somebody did. A person who opens the file does not see them.",
            Resolution(
                f"Leave out {counted(len(rows), 'row')}",
                lambda choices: choices.without_rows(rows, "hidden"),
            ),
            Resolution("Read them too", _decline("hidden rows")),
            is_doubt=True,
        )
    used = [
        k for k in table.hidden_columns if preview.columns[k].choice.role is not Role.IGNORE
    ]  # fmt: skip
    if used:
        names = [preview.columns[k].name for k in used]
        yield Cause(
            "hidden columns",
            State.PROPOSAL,
            "eye-off",
            f"{counted(len(used), 'column is', 'columns are')} hidden in the file",
            listed(names, quoted=False),
            "A person who opens the file does not see them.",
            Resolution(
                f"Leave out {counted(len(used), 'column')}",
                lambda choices: choices.with_role(used, Role.IGNORE),
            ),
            Resolution("Read them too", _decline("hidden columns")),
            columns=tuple(used),
            is_doubt=True,
        )


def _short_rows(preview: Preview) -> Iterator[Cause]:
    short = [n for n in preview.table.short_rows if n not in preview.dropped]
    if not short:
        return
    yield Cause(
        "short rows",
        State.PROPOSAL,
        "table",
        f"{counted(len(short), 'row has', 'rows have')} one cell fewer than the header",
        listed([f"row {n:,}" for n in short], quoted=False),
        "The last cell is read as blank. If another is missing, answers are in wrong columns.",
        Resolution(
            f"Leave out {counted(len(short), 'row')}",
            lambda choices: choices.without_rows(short, "short"),
        ),
        Resolution("Keep them", _decline("short rows")),
        is_doubt=True,
    )


def _unfinished(preview: Preview) -> Iterator[Cause]:
    rows = [n for n in responses_of(preview.table).unfinished if n not in preview.dropped]
    if not rows or len(rows) == preview.n_students:
        return
    answers = counted(len(rows), "answer")
    maker = preview.table.layout.maker or SOME_PROGRAM
    yield Cause(
        "unfinished",
        State.PROPOSAL,
        "circle-dashed",
        f"{answers} {'was' if len(rows) == 1 else 'were'} not finished",
        listed([f"row {n:,}" for n in rows], quoted=False),
        f"{maker[:1].upper()}{maker[1:]} marks who stopped before the end. Their other answers are "
        "blank.",
        Resolution(
            f"Leave out {counted(len(rows), 'row')}",
            lambda choices: choices.without_rows(rows, "unfinished"),
        ),
        Resolution("Keep them", _decline("unfinished")),
        is_doubt=True,
    )


def _capitals(preview: Preview) -> Iterator[Cause]:
    """Yield ids that differ in capitals only, where an id names a person and not a response."""
    for column in preview.columns_as(Role.ID):
        if column.choice.part is not None or is_response_id(facts_of(preview.table)[column.index]):
            continue
        same = preview.chosen.spelled_apart(column.index)
        if not same:
            continue
        people = len({last for _, last in same})
        yield Cause(
            "capitals",
            State.PROPOSAL,
            "users",
            f"{counted(people, 'id')} differ{'s' if people == 1 else ''} in capitals only",
            counted(len(same), "further way to write", "further ways to write"),
            "It may be one person who answered twice. If so, only the latest answer counts.",
            Resolution("Count as one person, keep the latest", _one_person(column.index, same)),
            Resolution("They are different people", _decline("capitals")),
            columns=(column.index,),
            samples=tuple(Sample(before=said[:30], after=(last[:30],)) for said, last in same[:3]),
            is_doubt=True,
        )


def _one_person(index: int, same: Sequence[tuple[str, str]]) -> Act:
    def act(choices: Choices) -> Choices:
        for said, last in same:
            choices = choices.with_meaning(index, said, last)
        keep = Keep.LATEST if choices.keep is Keep.ALL else choices.keep
        return replace(choices, keep=keep)

    return act
