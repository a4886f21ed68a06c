"""Designations of rooms: bare values, named columns, several files' habits."""

import pytest

from engine.tabular.designations import join_designations, read_designations
from engine.tabular.rooms import Column, guess_roles, read_rooms


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("Co-ed", {}),
        ("F|M", {"": ("f", "m")}),
        (" Gender = F ; Class  year=1|2 ", {"gender": ("f",), "class year": ("1", "2")}),
        ("F; Theme=any", {"": ("f",)}),
        ("=", {}),
        (";;;", {}),
        ("a=b=c", {"a=b": ("c",)}),
    ],
)
def test_designations_are_read(text: str, found: dict[str, tuple[str, ...]]) -> None:
    assert read_designations(text) == found


def test_several_columns_of_a_file_become_one_text_with_names() -> None:
    header = ["Hall", "Room", "Capacity", "Max Capacity", "Gender Designation", "Theme"]
    rows = [["Alder", "1", "2", "3", "F", "Quiet"], ["Alder", "2", "2", "", "Any", "none"]]
    roles = guess_roles(header, rows)
    assert roles[2:] == ["capacity", "max capacity", "designation", "designation"]
    found = read_rooms(header, rows, [2, 3], roles)
    assert not found.problems
    assert [room.designation for room in found.rooms] == ["Gender=F; Theme=Quiet", ""]
    assert [room.max_capacity for room in found.rooms] == [3, 2]
    assert (found.n_beds, found.n_extra_beds) == (4, 1)


def test_a_largest_number_alone_is_the_number_of_beds() -> None:
    assert guess_roles(["Room", "Max Occupancy"], [["1", "2"]]) == ["room", "capacity"]
    header = ["Room", "Bed", "Max Occupancy"]
    assert guess_roles(header, [["1", "A", "2"]])[2] != Column.MAX_CAPACITY


def test_fewer_beds_with_extra_beds_than_without_are_a_problem_of_the_row() -> None:
    found = read_rooms(
        ["r", "c", "m"], [["1", "3", "2"]], [7], ["room", "capacity", "max capacity"]
    )
    assert found.problems[0].row == 7
    assert "cannot be fewer than its 3 beds" in found.problems[0].sentence


def test_one_column_keeps_its_bare_value() -> None:
    assert join_designations({"Gender": "F"}) == "F"
    assert join_designations({"Theme": "x=y", "Gender": "F"}) == "x=y; Gender=F"
