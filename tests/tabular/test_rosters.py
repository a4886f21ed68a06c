"""Rosters of past years as housing systems write them: rooms, beds and groups beside students."""

import pytest

from engine.tabular.pair_choices import guess_pair_choices
from engine.tabular.pairs import PairsPreview, check_pairs
from engine.tabular.person_search import People
from engine.tabular.reading import read_table
from tests.tabular.file_writers import as_csv

IDS = tuple(f"9{k:06d}" for k in range(101, 113))
PAIRS = {frozenset((k, k + 1)) for k in range(0, 12, 2)}


def checked(header: list[str], rows: list[list[str]]) -> PairsPreview:
    people = People(IDS)
    table = read_table(as_csv([header, *rows]))
    return check_pairs(table, people, guess_pair_choices(table, people))


@pytest.mark.parametrize(
    "header",
    [
        ["Residence Hall", "Room #", "CWID"],
        ["BLDG_CODE", "ROOM_NUMBER", "SPRIDEN_ID"],
        ["BuildingName", "RoomNumber", "EntryID"],
    ],
)
def test_two_halls_may_have_a_room_of_one_number(header: list[str]) -> None:
    """The columns BLDG_CODE and ROOM_NUMBER were not recognised."""
    rows = [[("Alder", "Elm")[k // 6], f"{100 + k % 6 // 2}", IDS[k]] for k in range(12)]
    assert set(map(frozenset, checked(header, rows).pairs)) == PAIRS


@pytest.mark.parametrize("title", ["GroupID", "Group", "Pair", "Pair_No", "Roommate group"])
def test_a_group_is_a_room(title: str) -> None:
    found = checked([title, "CWID"], [[f"{k // 2}", IDS[k]] for k in range(12)])
    assert set(map(frozenset, found.pairs)) == PAIRS


def test_the_capitals_of_a_room_make_no_difference() -> None:
    """Students of AL101 and al101 shared no room."""
    rows = [[("AL", "al")[k % 2] + f"{k // 2}", IDS[k]] for k in range(12)]
    assert set(map(frozenset, checked(["Room", "CWID"], rows).pairs)) == PAIRS


@pytest.mark.parametrize("bed", ["-{}", "{}", " {}", "/{}"])
def test_beds_of_rooms_are_rooms_and_this_is_said(bed: str) -> None:
    rows = [[f"AL{100 + k // 2}{bed.format('AB'[k % 2])}", IDS[k]] for k in range(12)]
    found = checked(["Room Space", "CWID"], rows)
    assert set(map(frozenset, found.pairs)) == PAIRS
    (problem,) = found.problems
    assert not problem.is_error
    assert problem.sentence == (
        f"{rows[0][0]} and {rows[1][0]} are read as beds of one room: no room has two rows."
    )


def test_rooms_that_people_share_keep_their_letters() -> None:
    rows = [[f"{100 + k // 4}{'AB'[k // 2 % 2]}", IDS[k]] for k in range(12)]
    assert set(map(frozenset, checked(["Room", "CWID"], rows).pairs)) == PAIRS


def test_singles_with_numbers_stay_singles() -> None:
    found = checked(["Room", "CWID"], [[f"{100 + k}", IDS[k]] for k in range(12)])
    assert not found.pairs
    assert not found.can_import


@pytest.mark.parametrize("title", ["Do not place with", "Conflicts with", "avoid"])
def test_people_to_keep_apart_are_no_past_roommates(title: str) -> None:
    """A model would have learned from them what makes roommates get along."""
    found = checked(["CWID", title], [[IDS[k], IDS[k + 1]] for k in range(0, 12, 2)])
    assert not found.can_import
    assert found.errors[0].sentence == f"“{title}” names people who must not live together."
