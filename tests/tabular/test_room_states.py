"""Lists of rooms say in one column or several whether a room is open, held back or offline."""

import pytest

from engine.tabular.rooms import RoomFile, guess_roles, read_rooms


def read(header: list[str], *rows: list[str]) -> RoomFile:
    return read_rooms(header, rows, range(2, len(rows) + 2), guess_roles(header, rows))


@pytest.mark.parametrize(
    ("title", "cells", "states"),
    [
        ("Offline", ["Yes", "No", ""], ["offline", "open", "open"]),
        ("Closed?", ["x", "", ""], ["offline", "open", "open"]),
        ("Out of service", ["TRUE", "FALSE", "FALSE"], ["offline", "open", "open"]),
        ("Under maintenance", ["1", "0", "0"], ["offline", "open", "open"]),
        ("Available", ["Yes", "No", ""], ["open", "offline", "open"]),
        ("Available", ["x", "", ""], ["open", "offline", "offline"]),
        ("Active", ["1", "0", "1"], ["open", "offline", "open"]),
        ("Reserved", ["yes", "no", ""], ["kept", "open", "open"]),
        ("RA room", ["Y", "N", "N"], ["kept", "open", "open"]),
        ("Status", ["yes", "no", "held"], ["open", "offline", "kept"]),
        ("Status", ["frei", "gesperrt", "reserviert"], ["open", "offline", "kept"]),
    ],
)
def test_yes_means_what_the_title_says(title: str, cells: list[str], states: list[str]) -> None:
    """Rooms with yes under Offline were open, and those with no were offline."""
    rows = [[f"{k}", "2", cell] for k, cell in enumerate(cells, start=1)]
    found = read(["Room", "Beds", title], *rows)
    assert not found.problems
    assert [room.state for room in found.rooms] == states


def test_the_most_closed_of_several_columns_counts() -> None:
    found = read(
        ["Room", "Beds", "Status", "Offline", "Reserved"],
        ["1", "2", "open", "no", "no"],
        ["2", "2", "open", "yes", "yes"],
        ["3", "2", "open", "no", "yes"],
        ["4", "2", "closed", "no", "no"],
    )
    assert [room.state for room in found.rooms] == ["open", "offline", "kept", "offline"]


@pytest.mark.parametrize("title", ["Offline", "Closed", "Out of order", "Reserved", "Available"])
def test_other_words_under_a_state_are_named(title: str) -> None:
    found = read(["Room", "Beds", title], ["1", "2", "Water damage"], ["2", "2", ""])
    assert "“Water damage” is none of open, kept and offline" in found.problems[0].sentence


def test_names_of_assistants_are_no_states() -> None:
    found = read(["Room", "Beds", "RA"], ["1", "2", "Ann Lee"], ["2", "2", ""])
    assert [room.state for room in found.rooms] == ["open", "open"]


def test_numbers_of_available_beds_are_no_states() -> None:
    found = read(["Room", "Capacity", "Available"], ["1", "3", "0"], ["2", "3", "2"])
    assert [room.state for room in found.rooms] == ["open", "open"]
