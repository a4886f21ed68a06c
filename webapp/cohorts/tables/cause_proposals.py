"""What could be made of a file beside its plain questions: rules, yes and no, groups."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from webapp.cohorts.tables.causes import GROUPED_FROM, Act, Cause, Sample, State, Way, listed
from webapp.cohorts.tables.choices import Choices, ColumnChoice, Keep, Kind, Role
from webapp.cohorts.tables.columns import spelled_apart, unfinished_rows
from webapp.cohorts.tables.guesses import MAKERS_OWN, numbers_in, several_in
from webapp.cohorts.tables.numerals import Groups, suggest_groups
from webapp.cohorts.tables.persons import is_response_id
from webapp.cohorts.tables.preview import ColumnPreview, Preview
from webapp.cohorts.tables.rule_columns import NEED, rule_of
from webapp.cohorts.tables.several import REST, Part, Several, split_cell
from webapp.cohorts.tables.short_names import short_names
from webapp.cohorts.tables.table import Table
from webapp.common.formats import counted

_MEASURED = ("age", "height", "weight", "gpa", "income", "bmi")  # of the person, not how they live


def proposals_of(preview: Preview) -> Iterator[Cause]:
    """Return the proposals that staff have neither used nor declined."""
    found = [
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
    ]  # fmt: skip
    return (cause for cause in found if cause.key not in preview.choices.settled)


def _grouped(
    preview: Preview, causes: list[Cause], key: str, words: str, label: str
) -> list[Cause]:
    """Return the causes, or one for all of them where a page would be nothing but these."""
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
            fix=Way(label, all_of_them),
            other=Way("Leave them as they are", lambda choices: choices.settle(*keys)),
            columns=columns,
        )
    ]


def _decline(key: str) -> Act:
    return lambda choices: choices.settle(key)


def _of_file(preview: Preview) -> Iterator[ColumnPreview]:
    """The columns of the file that are the survey's own."""
    for column in preview.columns[: preview.table.n_columns]:
        if column.choice.reason != MAKERS_OWN and column.choice.role is not Role.ID:
            yield column


def _rules(preview: Preview) -> Iterator[Cause]:
    for column in _of_file(preview):
        counter = preview.table.answers(column.index)
        is_mark = column.choice.role is Role.IGNORE and len(counter) == 1  # yes, or nothing
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
            Way(f"Use as a {'need' if is_need else f'rule: same {rule}'}", _as_rule(column.index)),
            Way(f"Leave {leave}", _decline(f"rule {column.header}")),
            columns=(column.index,),
            samples=tuple(
                Sample(more=f"{value[:30]} {times:,}") for value, times in counter.most_common(5)
            ),
        )


def _as_rule(index: int) -> Act:
    return lambda choices: choices.with_role([index], Role.CONSTRAINT)


def _several(preview: Preview) -> Iterator[Cause]:
    parents = {c.choice.part.parent for c in preview.columns if c.choice.part is not None}
    for column in _of_file(preview):
        several = several_in(preview.table, column.index)
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
            Way(f"Split into {len(options)} yes or no", split_column(preview.table, column.index)),
            Way("Leave it out", _decline(f"split {column.header}")),
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
    """Return the act that makes a yes-or-no column of every option of a column."""
    several = several_in(table, index)

    def act(choices: Choices) -> Choices:
        if several is None:
            return choices
        options = _options(several)
        taken = [c.name or table.header[k] for k, c in enumerate(choices.columns)]
        names = short_names(options, taken)
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


def _numbers(preview: Preview) -> Iterator[Cause]:
    for column in _of_file(preview):
        style = numbers_in(preview.table, column.index)
        if style is None or column.choice.groups or column.choice.role is not Role.IGNORE:
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
            Way(f"Make {len(sizes)} groups", group_column(column.index, groups)),
            Way("Leave it out", _decline(f"groups {column.header}")),
            link="Move the borders",
            columns=(column.index,),
            bars=tuple(sizes),
        )


def suggested(table: Table, index: int) -> Groups | None:
    """Return the groups that are proposed for a column of numbers."""
    key = ("suggested", index)
    if key not in table.memo:
        style = numbers_in(table, index)
        cells = list(table.answers(index).elements())
        table.memo[key] = suggest_groups(cells, style) if style else None
    found: Groups | None = table.memo[key]
    return found


def group_sizes(table: Table, index: int, groups: Groups) -> list[tuple[str, int]]:
    """Return [(group, rows)] of a column of numbers, in order."""
    times: Counter[str] = Counter()
    for cell, count in table.answers(index).items():
        times[groups.level_of(cell)] += count
    return [(level, times[level]) for level in groups.levels]


def group_column(index: int, groups: Groups) -> Act:
    """Return the act that reads the numbers of a column as groups, in order."""
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
        "They differ only in capitals or spaces, and count as different answers.",
        Way("Count as one", _count_as_one(meant)),
        Way("They are different", _decline("spellings")),
        columns=columns,
        samples=tuple(
            Sample(before=said[:30], after=(means[:30],)) for _, said, means in meant[:3]
        ),
    )


def _count_as_one(meant: Sequence[tuple[int, str, str]]) -> Act:
    def act(choices: Choices) -> Choices:
        for index, said, means in meant:
            choices = choices.with_meaning(index, said, means)
            levels = tuple(level for level in choices.columns[index].levels if level != said)
            choices = choices.with_column(index, levels=levels)
        return choices

    return act


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
        Way(
            f"Leave out {counted(len(short), 'row')}",
            lambda choices: choices.without_rows(short, "short"),
        ),
        Way("Keep them", _decline("short rows")),
    )


def _unfinished(preview: Preview) -> Iterator[Cause]:
    rows = [n for n in unfinished_rows(preview.table) if n not in preview.dropped]
    if not rows or len(rows) == preview.n_students:
        return
    answers = counted(len(rows), "answer")
    yield Cause(
        "unfinished",
        State.PROPOSAL,
        "circle-dashed",
        f"{answers} {'was' if len(rows) == 1 else 'were'} not finished",
        listed([f"row {n:,}" for n in rows], quoted=False),
        f"{preview.table.layout.maker} marks who stopped before the end. Their other answers are "
        "blank.",
        Way(
            f"Leave out {counted(len(rows), 'row')}",
            lambda choices: choices.without_rows(rows, "unfinished"),
        ),
        Way("Keep them", _decline("unfinished")),
    )


def _capitals(preview: Preview) -> Iterator[Cause]:
    """Ids that are one but for capitals, where an id is of a person and not of a response."""
    for column in preview.columns_as(Role.ID):
        if column.choice.part is not None or is_response_id(preview.table, column.index):
            continue
        same = spelled_apart(preview.table, preview.choices, column.index)
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
            Way("Count as one person, keep the latest", _one_person(column.index, same)),
            Way("They are different people", _decline("capitals")),
            columns=(column.index,),
            samples=tuple(Sample(before=said[:30], after=(last[:30],)) for said, last in same[:3]),
        )


def _one_person(index: int, same: Sequence[tuple[str, str]]) -> Act:
    def act(choices: Choices) -> Choices:
        for said, last in same:
            choices = choices.with_meaning(index, said, last)
        keep = Keep.LATEST if choices.keep is Keep.ALL else choices.keep
        return replace(choices, keep=keep)

    return act
