"""Three hundred files of every maker, read right or refused by cause; none is read wrong."""

from collections.abc import Iterator

import pytest

from engine.tabular.choices import Choices, Role
from engine.tabular.guesses import guess_choices
from engine.tabular.makers import SURVEYMONKEY
from engine.tabular.preview import Preview, build_preview
from engine.tabular.reading import read_table
from engine.tabular.review import Review, review, use_all
from engine.tabular.table import Table
from tests.tabular.file_writers import (
    ACTIVITIES,
    CODES,
    COVER,
    PEOPLE,
    Person,
    answers,
    as_csv,
    as_xlsx,
    google_rows,
    microsoft_rows,
    plain_rows,
    qualtrics_rows,
    surveymonkey_rows,
)

UNICODE = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le")
ENDS = ("\r\n", "\n", "\r")


def western(rows: list[list[str]]) -> list[list[str]]:
    """Return the cells without what Windows' Western letters lack."""
    return [[cell.replace("–", "-") for cell in row] for row in rows]


def files() -> Iterator[tuple[str, str, bytes]]:
    """Return (name, maker, bytes) of every file."""
    for twice in (False, True):
        rows = answers(PEOPLE, twice=twice)
        mark = "twice" if twice else "once"
        yield from _qualtrics(rows, mark)
        yield from _forms(rows, mark)
        yield from _by_hand(rows, mark)


def _qualtrics(rows: list[Person], mark: str) -> Iterator[tuple[str, str, bytes]]:
    for headers in (3, 2, 1):
        for person in ("question", "mail", "reference"):
            if headers == 1 and person == "question":
                continue  # nothing in it says that Q1 is a number of the person
            table = qualtrics_rows(rows, headers=headers, person=person)
            name = f"qualtrics {headers} {person} {mark}"
            for encoding in UNICODE:
                delimiter = "\t" if encoding.startswith("utf-16") else ","
                data = as_csv(table, delimiter=delimiter, encoding=encoding, quote_all=True)
                yield f"{name} {encoding}", "Qualtrics", data
            for end in ("\n",):
                yield f"{name} {end!r}", "Qualtrics", as_csv(table, newline=end)
            yield f"{name} xlsx", "Qualtrics", as_xlsx({"Sheet0": table})


def _forms(rows: list[Person], mark: str) -> Iterator[tuple[str, str, bytes]]:
    for locale in ("en", "de", "es"):
        google = google_rows(rows, locale)
        for encoding in UNICODE:
            data = as_csv(google, encoding=encoding, quote_all=True)
            yield f"google {locale} {mark} {encoding}", "Google Forms", data
        yield f"google {locale} {mark} lf", "Google Forms", as_csv(google, newline="\n")
        sheets = {"Form responses 1": google, "Sheet2": []}
        yield f"google {locale} {mark} xlsx", "Google Forms", as_xlsx(sheets)
        microsoft = microsoft_rows(rows, locale)
        name = f"microsoft {locale} {mark}"
        yield f"{name} xlsx", "Microsoft Forms", as_xlsx({"Form1": microsoft})
        yield f"{name} codes", "Microsoft Forms", as_xlsx({"Codes": CODES, "Form1": microsoft})
        text = [["" if cell is None else str(cell) for cell in row] for row in microsoft]
        yield f"{name} csv", "Microsoft Forms", as_csv(text, encoding="utf-8-sig")
    monkey = surveymonkey_rows(rows)
    for encoding in UNICODE:
        yield f"monkey {mark} {encoding}", "SurveyMonkey", as_csv(monkey, encoding=encoding)
    yield f"monkey {mark} xlsx", "SurveyMonkey", as_xlsx({"Sheet": monkey})


def _by_hand(rows: list[Person], mark: str) -> Iterator[tuple[str, str, bytes]]:
    for decimal, delimiter in ((".", ","), (",", ";"), (",", "\t"), (".", "|")):
        for unit in ("", " h"):
            table = plain_rows(rows, mark=decimal, unit=unit)
            name = f"plain {delimiter!r} {decimal} {unit} {mark}"
            for encoding in ("utf-8", "utf-8-sig", "utf-16"):
                for end in ENDS:
                    data = as_csv(table, delimiter=delimiter, encoding=encoding, newline=end)
                    yield f"{name} {encoding} {end!r}", "", data
            data = as_csv(western(table), delimiter=delimiter, encoding="cp1252")
            yield f"{name} cp1252", "", data
    table = plain_rows(rows)
    for name, sheets in {
        "alone": {"Sheet1": table},
        "cover first": {"Cover": COVER, "Answers": table, "Codes": CODES},
        "cover last": {"Answers": table, "Codes": CODES, "Cover": COVER},
        "codes first": {"Codes": CODES, "Answers": table},
        "cover above": {"Sheet1": [*COVER, *table]},
        "empty first": {"Sheet1": [], "Answers": table},
    }.items():
        yield f"excel {name} {mark}", "", as_xlsx(sheets)
    yield f"csv cover {mark}", "", as_csv([["Housing survey 2026"], ["2026-05-31"], *table])
    total = [*table, [f"Total: {len(rows)}", *[""] * 6]]
    yield f"csv total {mark}", "", as_csv(total)


FILES = list(files())


def settled(table: Table) -> Review:
    """Press "Use all fixes" once."""

    def again(choices: Choices) -> Review:
        return review(build_preview(table, choices))

    return again(use_all(again(guess_choices(table)), again))


def test_there_are_three_hundred_different_files() -> None:
    assert len(FILES) >= 300
    assert len({name for name, _, _ in FILES}) == len(FILES)


@pytest.mark.parametrize(("maker", "data"), [f[1:] for f in FILES], ids=[f[0] for f in FILES])
def test_a_file_is_read_right(maker: str, data: bytes) -> None:
    table = read_table(data)
    assert table.layout.maker == maker
    found = settled(table)
    preview = found.preview
    assert preview.can_import, [cause.title for cause in found.causes if cause.is_error]
    assert sum(term for term, _ in found.arithmetic) == preview.n_students == len(PEOPLE)
    check_truth(preview)


def check_truth(preview: Preview) -> None:
    """Every person of the truth is there once, with their own latest answers."""
    columns = {column.name: column for column in preview.columns}

    def cells(name: str) -> list[str]:
        column = columns[name]
        assert column.choice.role in (Role.QUESTION, Role.CONSTRAINT), name
        return list(preview.cells(column.index))

    (person,) = preview.columns_as(Role.ID)
    ids = preview.cells(person.index)
    truth = {key: one for one in PEOPLE for key in (one.number, one.mail)}
    assert len(set(ids)) == len(PEOPLE)
    in_order = [truth[key] for key in ids]
    assert [cell.replace("-", "–") for cell in cells("Bedtime")] == [p.bedtime for p in in_order]
    assert cells("Smoking") == [p.smokes for p in in_order]
    tidy = "Tidiness"
    assert cells(tidy) == [p.tidy for p in in_order]
    assert columns["Gender"].choice.role is Role.CONSTRAINT
    assert [cell.replace("–", "-") for cell in cells("Gender")] == [p.gender for p in in_order]
    _check_sleep(preview, in_order)
    made = {c.choice.part.option: c.name for c in preview.columns if c.choice.part is not None}
    if preview.table.layout.maker != SURVEYMONKEY:  # which gives every option a column
        assert set(made) == set(ACTIVITIES)
    for option, name in made.items():
        assert cells(name) == ["Yes" if option in p.free else "No" for p in in_order]
    used = preview.columns_as(Role.QUESTION)
    assert not [c.name for c in used if c.name in ("Comments", "ResponseId", "ID", "Name")]


def _check_sleep(preview: Preview, in_order: list[Person]) -> None:
    (column,) = [c for c in preview.columns if c.choice.groups is not None]
    groups = column.choice.groups
    cells = preview.cells(column.index)
    for person, cell in zip(in_order, cells, strict=True):
        assert cell == groups.levels[sum(person.sleep >= edge for edge in groups.edges)]
