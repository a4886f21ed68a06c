"""Lists of rooms as housing systems write them: read as meant, or refused by row."""

import pytest

from engine.tabular.rooms import Column, guess_roles, read_rooms


def read(header: list[str], *rows: list[str]):
    numbers = list(range(2, len(rows) + 2))
    return read_rooms(header, rows, numbers, guess_roles(header, rows))


def test_one_line_a_room() -> None:
    found = read(
        ["Building", "Floor", "Room", "Capacity", "Gender", "Accessible", "Status", "Notes"],
        ["Alder", "3", "312", "3", "women", "yes", "", ""],
        ["Alder", "3", "314", "2", "Co-ed", "no", "Offline", "Water damage"],
    )
    assert not found.problems
    first, second = found.rooms
    assert (first.hall, first.floor, first.name, first.capacity) == ("Alder", "3", "312", 3)
    assert first.designation == "women"
    assert first.meets == ("Accessible",)
    assert (second.designation, second.state, second.note) == ("", "offline", "Water damage")


def test_one_line_a_bed() -> None:
    found = read(["Hall", "Room", "Bed"], ["Elm", "1", "A"], ["Elm", "1", "B"], ["Elm", "2", "A"])
    assert found.one_line_a_bed
    assert [(room.name, room.capacity) for room in found.rooms] == [("1", 2), ("2", 1)]


def test_a_room_with_one_closed_bed_is_closed() -> None:
    found = read(
        ["Room", "Bed", "Status"], ["1", "A", "open"], ["1", "B", "offline"], ["2", "A", ""]
    )
    assert [room.state for room in found.rooms] == ["offline", "open"]


def test_a_room_without_a_hall_among_halls_is_named() -> None:
    """Cells that were merged left all rooms but the first of each hall in "Main hall"."""
    found = read(["Hall", "Room", "Beds"], ["Elm", "1", "2"], ["", "2", "2"], ["Oak", "1", "2"])
    assert [problem.sentence for problem in found.problems] == [
        "Row 3, room 2, has no hall, though other rows have one. Write the hall in every row, also "
        "where cells were merged."
    ]
    assert read(["Hall", "Room", "Beds"], ["", "1", "2"]).rooms[0].hall == "Main hall"


def test_needs_in_one_cell() -> None:
    found = read(["Room", "Beds", "Features"], ["1", "2", "Quiet; Step-free ,Quiet"])
    assert found.rooms[0].meets == ("Quiet", "Step-free")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (["Elm", "", "2", ""], "Row 2 has no room"),
        (["Elm", "1", "two", ""], "“two” is no number of beds"),
        (["Elm", "1", "0", ""], "“0” is no number of beds"),
        (["Elm", "1", "9", ""], "“9” is no number of beds from 1 to 8"),
        (["Elm", "1", "²", ""], "no number of beds"),
        (["Elm", "1", "2", "sort of"], "none of open, kept and offline"),
        (["Elm", "x" * 41, "2", ""], "longer than 40 characters. Shorten it"),
        (["E" * 81, "1", "2", ""], "hall: “EEEEEEEEEEEEEEEEEEEE…” is longer than 80"),
    ],
)
def test_what_cannot_be_read_names_its_row(row: list[str], words: str) -> None:
    found = read(["Hall", "Room", "Capacity", "Status"], row)
    assert words in found.problems[0].sentence
    assert found.problems[0].row == 2
    assert not found.rooms


def test_a_room_twice_names_both_rows() -> None:
    found = read(["Hall", "Room", "Beds"], ["Elm", "1", "2"], ["elm", "1", "3"])
    assert "Row 3: elm 1 appears twice, first in row 2" in found.problems[0].sentence


def test_beds_of_one_room_for_different_people() -> None:
    found = read(["Room", "Bed", "Gender"], ["1", "A", "F"], ["1", "B", "M"])
    assert "are for different people" in found.problems[0].sentence


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (["1", "A", "2", "yes"], "Row 3: bed A of Main hall 1 appears twice, first in row 2."),
        (["1", "B", "3", "yes"], "is on another floor than in row 2"),
        (["1", "B", "2", "no"], "meet different needs, first in row 2"),
        (["1", "B", "2" * 21, "yes"], "floor: “22222222222222222222…” is longer than 20"),
    ],
)
def test_lines_of_one_room_that_contradict_each_other(other: list[str], sentence: str) -> None:
    found = read(["Room", "Bed", "Floor", "Accessible"], ["1", "A", "2", "yes"], other)
    assert sentence in found.problems[0].sentence
    assert found.problems[0].row == 3


def test_more_beds_than_are_placed_together() -> None:
    found = read(["Room", "Bed"], *(["1", str(k)] for k in range(9)))
    assert "has 9 beds; at most 8" in found.problems[0].sentence


def test_without_a_column_of_rooms_says_so() -> None:
    found = read(["Hall", "Colour"], ["Elm", "red"])
    assert "No column names the rooms" in found.problems[0].sentence


def test_a_role_stands_once_and_unknown_columns_are_left_out() -> None:
    roles = guess_roles(["Room", "Unit", "Rent"], [["1", "2", "300"]])
    assert roles == [Column.ROOM, Column.SUITE, Column.IGNORE]


@pytest.mark.parametrize(
    ("header", "roles"),
    [
        (["Unit", "Room", "Beds"], ["suite", "room", "capacity"]),
        (["Number", "Room", "Size", "Capacity"], ["ignore", "room", "ignore", "capacity"]),
        (["Community", "Building", "Unit", "Size"], ["ignore", "hall", "room", "capacity"]),
    ],
)
def test_a_better_name_further_right_takes_the_role(header: list[str], roles: list[str]) -> None:
    """The first of two names took the role: "Unit" became the room beside "Room"."""
    assert guess_roles(header, [["a"] * len(header)]) == roles


@pytest.mark.parametrize(
    "header",
    [
        ["Gebäude", "Zimmernummer", "Betten", "Geschlecht"],
        ["Edificio", "Habitación", "Camas", "Género"],
        ["Bâtiment", "Chambre", "Lits", "Sexe"],
        ["Room Location", "Room Base", "Capacity", "Room Gender"],
    ],
)
def test_headers_of_other_languages_and_makers(header: list[str]) -> None:
    found = read(header, ["A", "101", "2", "F"])
    (room,) = found.rooms
    assert (room.hall, room.name, room.capacity, room.designation) == ("A", "101", 2, "F")


@pytest.mark.parametrize("beds", ["2", "2.0", "2,00", "２", "Double", "double"])
def test_beds_as_spreadsheets_write_them(beds: str) -> None:
    (room,) = read(["Room", "Beds"], ["101", beds]).rooms
    assert room.capacity == 2


@pytest.mark.parametrize("beds", ["2.5", "-2", "0", "1e0", "²"])
def test_what_is_no_number_of_beds(beds: str) -> None:
    assert "no number of beds" in read(["Room", "Beds"], ["101", beds]).problems[0].sentence


def test_the_kind_of_a_room_tells_its_beds() -> None:
    """Without a number of beds each line was a bed, and a double had one."""
    found = read(["Room", "Room Type"], ["101", "Double"], ["102", "Single"])
    assert [room.capacity for room in found.rooms] == [2, 1]
    beds = read(["Room", "Type"], ["101", "Double"], ["101", "Double"])
    assert [room.capacity for room in beds.rooms] == [2]


def test_a_status_of_beds_is_a_state() -> None:
    """A column "Bed Status" was left out, and students were placed in beds that are taken."""
    found = read(["Room", "Bed", "Bed Status"], ["1", "A", "Occupied"])
    assert "“Occupied” is none of open, kept and offline" in found.problems[0].sentence


def test_a_kind_is_no_number_of_beds_where_lines_may_be_beds() -> None:
    found = read(["Room", "Type"], ["101A", "Double"], ["101B", "Double"])
    assert [room.capacity for room in found.rooms] == [1, 1]


def test_a_need_that_is_too_long_is_refused_with_its_row() -> None:
    """Its end was cut off, so that two needs could become one."""
    long = "w" * 81
    found = read(["Room", "Capacity", "Features"], ["1", "2", f"lift, {long}"], ["2", "2", "lift"])
    (problem,) = found.problems
    assert problem.row == 2
    assert "Row 2, needs: “wwwwwwwwwwwwwwwwwwww…” is longer than 80 characters" in problem.sentence
    (whole,) = read(["Room", "Capacity", "Features"], ["1", "2", f"lift, {long[1:]}"]).rooms
    assert whole.meets == ("lift", long[1:])


def test_rooms_of_suites_get_unique_names_and_large_suites_are_refused() -> None:
    header = ["Hall", "Apartment", "Room", "Beds"]
    found = read(header, ["Elm", "201", "A", "2"], ["Elm", "202", "a", "1"], ["Elm", "", "B", "2"])
    assert [(room.name, room.suite) for room in found.rooms] == [
        ("201-A", "201"),
        ("202-a", "202"),
        ("B", ""),
    ]
    assert found.n_suites == 2
    found = read(header, *(["Elm", "East", f"{k}", "8"] for k in range(4)))
    assert found.problems[0].sentence == (
        "Row 2: suite East of Elm has 32 beds; a suite has at most 24. Leave the column out, or "
        "name smaller suites."
    )
    found = read(header, ["Elm", "x" * 39, "A", "1"], ["Elm", "y", "A", "1"])
    assert "longer than 40 characters" in found.problems[0].sentence


def test_a_column_of_parts_of_a_campus_or_without_values_is_no_suite() -> None:
    for unit in ("North", ""):
        rows = [[unit, f"{k}", "2"] for k in range(60)]
        assert guess_roles(["Unit", "Room", "Beds"], rows)[0] == Column.IGNORE


@pytest.mark.parametrize(
    ("hall", "room", "beds"),
    [
        ("Residence Hall", "Room #", "Max Occupancy"),
        ("BLDG_CODE", "ROOM_NUMBER", "CAPACITY"),
        ("BuildingName", "RoomNumber", "BedCapacity"),
        ("Location", "Room No.", "Total Beds"),
        ("Hall Name", "Rm #", "Room Cap."),
    ],
)
def test_titles_of_lists_of_rooms(hall: str, room: str, beds: str) -> None:
    """A hall that was not recognised became "Main hall" without a word."""
    (found,) = read([hall, room, beds], ["Alder", "101", "3"]).rooms
    assert (found.hall, found.name, found.capacity) == ("Alder", "101", 3)


def test_a_name_of_a_hall_comes_before_its_code() -> None:
    (found,) = read(
        ["Building Code", "Building Name", "Room", "Beds"], ["AL", "Alder", "1", "2"]
    ).rooms
    assert found.hall == "Alder"
    header = ["RoomSpaceID", "RoomBase", "RoomSpace"]
    found = read(header, ["1000", "101", "A"], ["1001", "101", "B"])
    assert [(room.name, room.capacity) for room in found.rooms] == [("101", 2)]


@pytest.mark.parametrize(
    ("kind", "beds"),
    [("Economy Triple", 3), ("Double (XL)", 2), ("SUPER_SINGLE", 1), ("2-person", 2), ("Quads", 4),
     ("four person suite", 4), ("Doppelzimmer", 2), ("Individual", 1), ("Double, double bed", 2)],
)  # fmt: skip
def test_kinds_of_rooms_in_more_words(kind: str, beds: int) -> None:
    """One "Economy Triple" among doubles made every room a single."""
    found = read(["Hall", "Room", "Room Type"], ["A", "1", "Double"], ["A", "2", kind])
    assert [room.capacity for room in found.rooms] == [2, beds]


@pytest.mark.parametrize(
    "kind", ["Studio", "Double as Single", "Single-sex", "Twin XL", "Double bed", ""]
)
def test_a_kind_that_says_no_number_of_beds_is_named(kind: str) -> None:
    found = read(["Hall", "Room", "Room Type"], ["A", "1", "Double"], ["A", "2", kind])
    assert found.problems[0].sentence == f"Row 3, A 2: “{kind}” is no number of beds from 1 to 8."
