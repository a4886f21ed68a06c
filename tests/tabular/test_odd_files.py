"""Files that nobody would think of: each is read right or refused by cause, none is read wrong."""

import time
from collections.abc import Callable

import pytest

from engine.tabular.choices import Role
from engine.tabular.guesses import guess_choices
from engine.tabular.preview import ColumnPreview, Preview
from engine.tabular.reading import read_table
from engine.tabular.source import TableError
from tests.tabular.file_writers import as_csv
from tests.tabular.odd_files import (
    ASKED,
    HOBBIES,
    PEOPLE,
    REFUSED,
    RIGHT,
    redcap,
    wide,
)
from tests.tabular.test_files_as_they_come import settled

# What a file may have beside the four questions and the several-of.
MORE = {"Hours of sleep", "Mornings? 🌅"}
BEDTIMES = ("0", "1", "2", "3")  # REDCap writes codes


@pytest.mark.parametrize("make", RIGHT, ids=lambda make: make.__name__)
def test_it_is_read_right(make: Callable[[], bytes]) -> None:
    found = settled(read_table(make()))
    preview = found.preview
    assert preview.can_import, [cause.title for cause in found.causes if cause.is_error]
    n_unfinished = 14 if make is redcap else 0  # by their codes, 0 of 0 to 2
    assert preview.n_students == len(PEOPLE) - n_unfinished
    (person,) = preview.columns_as(Role.ID)
    number = [int("".join(filter(str.isdigit, key))) for key in preview.cells(person.index)]
    in_order = [PEOPLE[k - (make is redcap)] for k in number]  # which counts records from 1
    used = preview.columns_as(Role.QUESTION) + preview.columns_as(Role.CONSTRAINT)
    asked, liked = [], []
    for column in used:
        option = next((h for h in HOBBIES if h in (column.name, column.header)), "")
        if option or column.header.startswith("hobbies___"):
            liked.append(option or HOBBIES[int(column.header[-1]) - 1])
            chose = [liked[-1] in one["hobbies"] for one in in_order]
            assert [cell in ("Yes", "1") for cell in preview.cells(column.index)] == chose
        elif column.name not in MORE:
            asked.append(next(name for name in ASKED if said(preview, column) == truth(
                make, name, in_order)))  # fmt: skip
    without = {"smokes"} if make is redcap else set()
    assert sorted(asked) == sorted(set(ASKED) - without)
    assert liked in ([], list(HOBBIES)) or set(liked) == set(HOBBIES)
    (gender,) = preview.columns_as(Role.CONSTRAINT)
    assert said(preview, gender) == truth(make, "gender", in_order)


def said(preview: Preview, column: ColumnPreview) -> list[str]:
    return list(preview.cells(column.index))


def truth(make: Callable[[], bytes], name: str, in_order: list[dict[str, str]]) -> list[str]:
    """The answers as the file writes them."""
    found = [one[name] for one in in_order]
    if make is redcap and name == "gender":
        return [str(1 + (answer == "Man")) for answer in found]
    if make is redcap and name == "bedtime":
        words = ("Before 10 pm", "10-11 pm", "11 pm-12", "After midnight")
        return [BEDTIMES[words.index(answer)] for answer in found]
    return found


@pytest.mark.parametrize(
    ("make", "cause"), REFUSED.items(), ids=lambda x: getattr(x, "__name__", "")
)
def test_it_is_refused_by_cause(make: Callable[[], bytes], cause: str) -> None:
    with pytest.raises(TableError) as refused:
        read_table(make())
    assert cause in str(refused.value)


def test_a_hundred_and_fifty_columns_leave_those_that_tell_most() -> None:
    preview = settled(read_table(wide())).preview
    assert preview.can_import
    assert len(preview.columns) == 150


def test_remarks_by_the_thousand_are_read_in_no_time() -> None:
    """Looking for the place of each remark among the answers took minutes."""
    rows = [["Student ID", "Bedtime", "Tidy"]]
    rows += [[f"N{k}", f"About {k} pm" if k % 20 == 0 else BEDTIMES[k % 2], str(k % 5)]
             for k in range(6_000)]  # fmt: skip
    begun = time.process_time()
    guess_choices(read_table(as_csv(rows)))
    assert time.process_time() - begun < 10.0
