"""``roommates rooms``, as other programs call it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from engine.cli.main import main

PROMISED = {
    "n_rooms",
    "n_placed",
    "n_unplaced",
    "n_moved",
    "weight",
    "upper_bound",
    "relative_gap",
    "seconds",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A year of 24 students with a model, and 10 rooms of 26 beds."""
    path = tmp_path_factory.mktemp("rooms")
    words = ["simulate", "--students", "24", "--cohorts", "2", "--seed", "1", "--out", str(path)]
    assert main(["roommates", *words]) == 0
    cohort = f"{path}/survey_1.csv:{path}/pairs_1.csv"
    assert main(["roommates", "train", "--cohort", cohort, "--out", f"{path}/m.npz"]) == 0
    with open(path / "survey_2.csv", newline="") as file:
        rows = list(csv.reader(file))
    for k, row in enumerate(rows):
        row += ["Gender", "accessible"] if k == 0 else ["FM"[k % 2], "yes" if k == 3 else ""]
    write(path / "survey.csv", rows)
    capacities = [1, 1, 2, 2, 2, 2, 3, 3, 4, 6]
    rooms = [["room", "capacity", "hall", "accessible"]]
    rooms += [
        [f"R{k}", c, "EW"[k % 2], "yes" if k == 6 else "no"] for k, c in enumerate(capacities)
    ]
    write(path / "rooms.csv", rooms)
    return path


def write(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def call(capsys, folder, out, *words, rooms="rooms.csv"):
    files = ["--survey", folder / "survey.csv", "--model", folder / "m.npz", "--out", out]
    files += ["--rooms", folder / rooms if isinstance(rooms, str) else rooms]
    limits = [] if "--max-seconds" in words else ["--max-seconds", 300]
    code = main(["roommates", "rooms", *map(str, [*files, *limits, *words]), "--json"])
    captured = capsys.readouterr()
    lines = captured.out.strip().splitlines()
    return code, json.loads(lines[-1]) if lines else {}, captured.err


def read(path):
    with open(path, newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def test_everybody_gets_a_bed_and_the_promised_figures_are_printed(folder, capsys, tmp_path):
    code, result, _ = call(capsys, folder, tmp_path / "p.csv")
    assert code == 0
    assert set(result) >= PROMISED
    assert (result["n_placed"], result["n_unplaced"], result["n_moved"]) == (24, 0, 0)
    assert result["weight"] <= result["upper_bound"] + 1e-9
    assert result["relative_gap"] <= 0.005
    placed = read(tmp_path / "p.csv")
    capacity = {f"R{k}": c for k, c in enumerate([1, 1, 2, 2, 2, 2, 3, 3, 4, 6])}
    for room, beds in capacity.items():
        assert sum(row["room"] == room for row in placed.values()) <= beds
    assert sum(float(row["score"]) for row in placed.values()) / 2 == pytest.approx(
        result["weight"], abs=1e-4
    )
    third = list(placed)[2]
    assert placed[third]["room"] == "R6"  # accessible = yes in both files is a need
    chances = [float(row["probability"]) for row in placed.values() if row["probability"]]
    assert chances
    assert all(0.0 <= chance <= 1.0 for chance in chances)


def test_rules_requests_and_preferences_hold(folder, capsys, tmp_path):
    ids = list(read_ids(folder))
    rules = write(
        tmp_path / "rules.csv",
        [
            ["rule", "student_a", "student_b"],
            ["lock", ids[0], ids[4]],
            ["forbid", ids[1], ids[5]],
            ["same:Gender", "", ""],
            ["room", ids[8], "R9"],
            ["offline", "R0", ""],
            ["single", ids[9], ""],
            ["need:hall", ids[11], "W"],
        ],
    )
    requests = write(
        tmp_path / "wants.csv",
        [["student", "wants", "kind"], [ids[12], ids[14], "must"], [ids[13], ids[15], "wish"]],
    )
    liked = write(
        tmp_path / "liked.csv", [["student", "rank", "hall"], [ids[16], 1, "E"], [ids[16], 2, "W"]]
    )
    code, result, error = call(
        capsys, folder, tmp_path / "p.csv",
        "--constraints", rules, "--requests", requests, "--preferences", liked,
        "--request-weight", 50, "--preference-weight", 50,
    )  # fmt: skip
    assert code == 0, error
    placed = read(tmp_path / "p.csv")
    room = [placed[student]["room"] for student in ids]
    assert room[0] == room[4]
    assert room[1] != room[5]
    assert room[8] == "R9"
    assert "R0" not in room
    assert room.count(room[9]) == 1
    assert int(room[11][1:]) % 2 == 1
    assert room[12] == room[14]
    assert room[13] == room[15]
    assert int(room[16][1:]) % 2 == 0
    assert result["requests_honoured"] == 2
    assert all(
        len({"FM"[(k + 1) % 2] for k in range(24) if room[k] == name}) == 1 for name in set(room)
    )


def read_ids(folder):
    with open(folder / "survey.csv", newline="") as file:
        return [row["id"] for row in csv.DictReader(file)]


def test_a_high_price_keeps_everybody_who_can_stay(folder, capsys, tmp_path):
    assert call(capsys, folder, tmp_path / "p.csv")[0] == 0
    rows = [[row["student"], row["room"]] for row in read(tmp_path / "p.csv").values()]
    rows[1][1], rows[5][1] = rows[5][1], rows[1][1]
    rows.append(["S-gone", "R0"])
    before = write(tmp_path / "before.csv", [["student", "room"], *rows])
    options = ["--previous", before, "--move-cost"]
    code, result, _ = call(capsys, folder, tmp_path / "q.csv", *options, 100)
    assert (code, result["n_moved"]) == (0, 0)
    free = call(capsys, folder, tmp_path / "q.csv", *options, 0, "--gap", 1e-6)[1]
    assert free["weight"] >= result["weight"] - 1e-9


def test_who_lived_in_a_room_that_is_gone_has_moved(folder, capsys, tmp_path):
    """Nobody was said to have moved when a hall was closed, since none of its rooms was known."""
    ids = list(read_ids(folder))
    rows = [["student", "room"], *([student, f"OLD{k // 3}"] for k, student in enumerate(ids[:9]))]
    before = write(tmp_path / "before.csv", rows)
    code, result, _ = call(
        capsys, folder, tmp_path / "q.csv", "--previous", before, "--move-cost", 1, "--gap", 1
    )
    assert (code, result["n_moved"]) == (0, 9)


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--rooms", "place,beds\nA,2\n", "No column names the rooms"),
        ("--rooms", "room,capacity\nA,2\nA,3\n", "row 3: Main hall A appears twice"),
        ("--rooms", "room,capacity\nA,9\n", "row 2, Main hall A: “9” is no number of beds"),
        ("--rooms", "room,capacity\nA,two\n", "“two” is no number of beds from 1 to 8"),
        ("--rooms", "room,capacity\n,2\n", "row 2 has no room"),
        ("--rooms", "room,capacity,status\nA,2,sort of\n", "none of open, kept and offline"),
        ("--rooms", "", "empty"),
        ("--constraints", "rule,student_a,student_b\nkeep,A,B\n", "received 'keep'"),
        ("--constraints", "rule,student_a,student_b\nlock,A,B\n", "A is not in the survey"),
        ("--constraints", "rule,student_a,student_b\nsame:Sex,,\n", "same:Sex names no column"),
        ("--constraints", "rule,student_a\noffline,R99\n", "R99 is not a room"),
        ("--requests", "student,wants\nS-9,S-8\n", "S-9 is not in the survey"),
        ("--requests", "student,wants\nS-2001,S-2002\nS-2001,S-2002\n", "twice, first in row 2"),
        ("--preferences", "student,rank,view\nS-9,1,sea\n", "view names no column"),
        ("--preferences", "student,rank,hall\nS-2001,0,E\n", "expected a rank from 1"),
        ("--constraints", "rule,student_a,student_b\nalike:Gender,1e6,\n", "at most 100,000 nats"),
        ("--previous", "student,place\nS-9,R1\n", "expected a column 'room'"),
    ],
)
def test_a_bad_file_is_one_clear_sentence(folder, capsys, tmp_path, option, content, message):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    rooms = path if option == "--rooms" else "rooms.csv"
    words = [] if option == "--rooms" else [option, path]
    code, result, error = call(capsys, folder, tmp_path / "p.csv", *words, rooms=rooms)
    assert code == 2
    assert message in error
    assert error.count("\n") == 1
    assert set(result) == {"error"}
    assert not (tmp_path / "p.csv").exists()


def test_rosters_are_simulated_and_learned_from(capsys, tmp_path):
    words = ["simulate", "--students", 40, "--seed", 2, "--rooms", "2,3,3", "--out", tmp_path]
    assert main(["roommates", *map(str, words)]) == 0
    with open(tmp_path / "roster_1.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    sizes = [sum(row["room"] == name for row in rows) for name in {row["room"] for row in rows}]
    assert (sum(sizes), max(sizes)) == (40, 3)
    cohort = f"{tmp_path}/survey_1.csv:{tmp_path}/roster_1.csv"
    words = ["train", "--cohort", cohort, "--out", tmp_path / "m.npz", "--json"]
    capsys.readouterr()
    assert main(["roommates", *map(str, words)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["relative_gap"] <= 1e-4
    assert main(["roommates", "simulate", "--students", "4", "--rooms", "9", "--out", "x"]) == 2


TITLES = ("room", "capacity", "accessible")


def test_too_few_beds_fail_by_name_or_leave_people_out(folder, capsys, tmp_path):
    rooms = write(tmp_path / "few.csv", [[*TITLES], ["A", 8, "yes"], ["B", 8, ""]])
    code, result, error = call(capsys, folder, tmp_path / "p.csv", rooms=rooms)
    assert code == 1
    assert "24 students need a bed, and the rooms that they may have hold 16" in error
    assert "error" in result
    code, result, _ = call(capsys, folder, tmp_path / "p.csv", "--allow-unplaced", rooms=rooms)
    assert code == 0
    assert (result["n_placed"], result["n_unplaced"]) == (16, 8)
    assert np.isfinite(result["relative_gap"])


@pytest.mark.parametrize("case", ["single rooms", "live alone", "keep apart", "one student"])
def test_a_year_in_which_nobody_shares_a_room_is_placed(folder, capsys, tmp_path, case):
    """The probabilities of no pair at all ended in a traceback, and nothing was written."""
    ids = list(read_ids(folder))[:2]
    with open(folder / "survey.csv", newline="") as file:
        rows = list(csv.reader(file))
    survey = write(tmp_path / "few.csv", rows[: 2 if case == "one student" else 3])
    beds = 1 if case == "single rooms" else 2
    rooms = write(tmp_path / "rooms.csv", [["room", "capacity"], ["A", beds], ["B", beds]])
    rules = {"live alone": [["single", ids[0], ""]], "keep apart": [["forbid", *ids]]}
    words = ["--survey", survey, "--model", folder / "m.npz", "--rooms", rooms]
    if case in rules:
        path = write(tmp_path / "rules.csv", [["rule", "student_a", "student_b"], *rules[case]])
        words += ["--constraints", path]
    words += ["--out", tmp_path / "p.csv", "--json"]
    assert main(["roommates", "rooms", *map(str, words)]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    placed = read(tmp_path / "p.csv")
    assert result["n_unplaced"] == 0
    assert len({row["room"] for row in placed.values()}) == len(placed)
    assert all(row["probability"] == "" for row in placed.values())


def test_rules_left_out_are_named_in_json_and_in_words(folder, capsys, tmp_path):
    ids = list(read_ids(folder))
    rules = write(
        tmp_path / "rules.csv",
        [["rule", "student_a", "student_b"], ["lock", ids[0], ids[1]], ["same:Gender", "", ""]],
    )
    code, _, error = call(capsys, folder, tmp_path / "p.csv", "--constraints", rules)
    assert (code, "differ in Gender" in error) == (1, True)
    options = ["--constraints", rules, "--allow-unplaced"]
    code, result, _ = call(capsys, folder, tmp_path / "p.csv", *options)
    assert (code, result["n_unplaced"]) == (0, 0)
    (dropped,) = result["dropped_rules"]
    assert dropped["rule"] == "lock"
    assert dropped["students"] == ids[:2]
    files = ["--survey", folder / "survey.csv", "--model", folder / "m.npz"]
    files += ["--rooms", folder / "rooms.csv", "--out", tmp_path / "p.csv", *options]
    assert main(["roommates", "rooms", *map(str, files)]) == 0
    assert dropped["reason"] in capsys.readouterr().out


def test_a_need_that_no_column_of_the_rooms_names_is_not_ignored(folder, capsys, tmp_path):
    """A building list without the column was read as if every room met every need."""
    rooms = write(tmp_path / "rooms.csv", [["room", "capacity"], *([f"R{k}", 3] for k in range(9))])
    code, _, error = call(capsys, folder, tmp_path / "p.csv", rooms=rooms)
    assert code == 1
    assert "No room fits S-2003: 1 need accessible = yes." in error
    code, result, _ = call(capsys, folder, tmp_path / "p.csv", "--allow-unplaced", rooms=rooms)
    assert (code, result["unplaced"]) == (0, ["S-2003"])


def test_a_column_of_needs_of_another_name_counts(folder, capsys, tmp_path):
    """The survey asks for an accessible room, the building list has a column of features."""
    with open(folder / "survey.csv", newline="") as file:
        rows = list(csv.reader(file))
    title = rows[0].index("accessible")
    rows[0][title] = "Do you need an accessible room?"
    for k, row in enumerate(rows[1:]):
        row[title] = "Ground floor" if k in (3, 8) else ""
    with open(folder / "rooms.csv", newline="") as file:
        rooms = [row[:3] for row in csv.reader(file)]
    rooms[0].append("Features")
    for k, row in enumerate(rooms[1:]):
        row.append("Quiet; Ground floor" if k in (2, 7) else "Quiet")
    survey, list_of_rooms = write(tmp_path / "s.csv", rows), write(tmp_path / "r.csv", rooms)
    words = ["--survey", str(survey)]
    code, result, _ = call(capsys, folder, tmp_path / "p.csv", *words, rooms=list_of_rooms)
    assert code == 0
    assert result["needs"] == ["Ground floor"]
    assert (result["n_with_needs"], result["n_with_needs_placed"]) == (2, 2)
    placed = read(tmp_path / "p.csv")
    assert {placed[rows[k + 1][0]]["room"] for k in (3, 8)} <= {"R2", "R7"}
    for row in rooms[1:]:
        row[3] = "Quiet"
    code, _, error = call(
        capsys, folder, tmp_path / "q.csv", *words, rooms=write(tmp_path / "r.csv", rooms)
    )
    assert code == 1
    assert "Ground floor" in error


HOUSING_SYSTEMS = Path(__file__).parent.parent / "webapp" / "housing" / "strangers"


def test_a_list_of_a_housing_system_is_read_by_its_own_columns(folder, capsys, tmp_path):
    """The page read "Room Number" and "Gender Designation"; the command line refused them."""
    with open(folder / "survey.csv", newline="") as file:
        rows = list(csv.reader(file))
    rooms = HOUSING_SYSTEMS / "rooms_gender_designation.csv"
    for row in rows[1:]:
        row[-2:] = "Woman", ""
    survey = write(tmp_path / "s.csv", rows)
    words = ["--survey", str(survey)]
    code, result, error = call(capsys, folder, tmp_path / "p.csv", *words, rooms=rooms)
    assert (code, error) == (0, "")
    assert (result["designations"], result["notes"]) == (["Gender Designation"], [])
    with rooms.open(newline="") as file:
        known = {row["Room Number"] for row in csv.DictReader(file)}
    assert {row["room"] for row in read(tmp_path / "p.csv").values()} <= known
    rows[1][-2] = "Man"
    write(survey, rows)
    code, _, error = call(capsys, folder, tmp_path / "q.csv", *words, rooms=rooms)
    assert code == 1
    assert "Gender Designation" in error


def test_rooms_that_are_offline_or_held_back_stay_empty(folder, capsys, tmp_path):
    lines = [["Hall", "Room", "Bed", "Status", "Accessible"]]
    lines += [["E", "1", bed, "Out of service", "yes"] for bed in "AB"]
    lines += [["E", "2", bed, "RA", "yes"] for bed in "AB"]
    lines += [["W", f"{k}", bed, "Open", "yes"] for k in range(1, 9) for bed in "ABC"]
    rooms = write(tmp_path / "r.csv", lines)
    code, result, _ = call(capsys, folder, tmp_path / "p.csv", rooms=rooms)
    assert (code, result["n_placed"]) == (0, 24)
    used = {row["room"] for row in read(tmp_path / "p.csv").values()}
    assert used == {f"W {k}" for k in range(1, 9)}


def test_a_designation_that_no_column_of_the_survey_has_is_said(folder, capsys, tmp_path):
    lines = [["Room", "Beds", "Reserved for", "Accessible"]]
    lines += [[f"R{k}", 3, "Honors", "yes"] for k in range(8)]
    rooms = write(tmp_path / "r.csv", lines)
    code, result, _ = call(capsys, folder, tmp_path / "p.csv", rooms=rooms)
    assert code == 0
    assert result["notes"] == [
        "The rooms' column Reserved for was not used, because no column of the survey has its "
        "values. Name one with the rule designate:COLUMN,Reserved for."
    ]
