"""The roommates verb, as other programs call it."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.cli.main import main
from engine.datasets.practice_pairs import simulate_pairs
from engine.datasets.roommate_files import write_survey_csv
from tests.learning.roommates.cohorts import random_survey
from tests.patience import PATIENCE_SECONDS, wait_for


def call(capsys, *words):
    """Run one command; return its exit code, its JSON and its error line."""
    code = main(["roommates", *map(str, words), "--json"])
    captured = capsys.readouterr()
    lines = captured.out.strip().splitlines()
    return code, json.loads(lines[-1]) if lines else {}, captured.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("university")
    words = ["simulate", "--students", "60", "--cohorts", "3", "--seed", "1", "--out", str(path)]
    assert main(["roommates", *words]) == 0
    pairs = [f"{path}/survey_{k}.csv:{path}/pairs_{k}.csv" for k in (1, 2)]
    words = ["train", "--cohort", pairs[0], "--cohort", pairs[1], "--out", str(path / "m.npz")]
    assert main(["roommates", *words]) == 0
    return path


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_training_prints_the_promised_fields(folder, capsys, tmp_path):
    code, result, _ = call(
        capsys, "train", "--cohort", f"{folder}/survey_1.csv:{folder}/pairs_1.csv",
        "--out", tmp_path / "m.npz", "--lambda", 50, "--rho", 0.5, "--solver", "theta",
    )  # fmt: skip
    assert code == 0
    assert result["relative_gap"] <= 1e-4
    assert result["n_features"] == 200
    promised = {
        "objective",
        "log_likelihood",
        "duality_gap",
        "iterations",
        "oracle_calls",
        "seconds",
    }
    assert promised <= set(result)
    assert result["method"] == "theta: potentials"


def test_assigning_puts_every_student_in_exactly_one_pair(folder, capsys, tmp_path):
    code, result, _ = call(
        capsys, "assign", "--survey", folder / "survey_3.csv", "--model", folder / "m.npz",
        "--out", tmp_path / "p.csv", "--marginals", tmp_path / "m.npy",
    )  # fmt: skip
    assert code == 0
    rows = read(tmp_path / "p.csv")
    assert list(rows[0]) == ["student_a", "student_b", "score", "probability"]
    students = [row[k] for row in rows for k in ("student_a", "student_b")]
    assert sorted(students) == sorted(row["id"] for row in read(folder / "survey_3.csv"))
    assert np.load(tmp_path / "m.npy").shape == (60, 60)
    assert result["gap"] < 1e-6
    assert result["method"] == "potentials, Markov chain"


def test_constraints_are_followed(folder, capsys, tmp_path):
    rules = tmp_path / "rules.csv"
    rules.write_text("rule,student_a,student_b\nlock,S-3001,S-3002\nforbid,S-3003,S-3004\n")
    code, _, _ = call(
        capsys, "assign", "--survey", folder / "survey_3.csv", "--model", folder / "m.npz",
        "--out", tmp_path / "p.csv", "--constraints", rules,
    )  # fmt: skip
    assert code == 0
    pairs = {(r["student_a"], r["student_b"]): r["probability"] for r in read(tmp_path / "p.csv")}
    assert pairs["S-3001", "S-3002"] == "1"
    assert ("S-3003", "S-3004") not in pairs


def test_a_lock_against_a_forbid_is_one_line_and_exit_1(folder, capsys, tmp_path):
    rules = tmp_path / "rules.csv"
    rules.write_text("rule,student_a,student_b\nlock,S-3001,S-3002\nforbid,S-3002,S-3001\n")
    code, _, error = call(
        capsys, "assign", "--survey", folder / "survey_3.csv", "--model", folder / "m.npz",
        "--out", tmp_path / "p.csv", "--constraints", rules,
    )  # fmt: skip
    assert code == 1
    assert "S-3001 and S-3002 are locked together and never to be paired" in error
    assert not (tmp_path / "p.csv").exists()


def test_evaluation_writes_curves_and_weights(folder, capsys, tmp_path):
    code, result, _ = call(
        capsys, "evaluate", "--survey", folder / "survey_3.csv", "--pairs",
        folder / "pairs_3.csv", "--model", folder / "m.npz", "--out", tmp_path / "out",
    )  # fmt: skip
    assert code == 0
    assert {"auc", "baseline_auc", "hamming_error"} <= set(result)
    assert len(read(tmp_path / "out" / "weights.csv")) == 200
    assert (tmp_path / "out" / "roc.svg").read_text().startswith("<svg")
    curve = [r for r in read(tmp_path / "out" / "roc.csv") if r["curve"] == "Model"]
    x, y = (np.array([float(r[k]) for r in curve]) for k in list(curve[0])[1:])
    assert np.trapezoid(y, x) == pytest.approx(result["auc"], abs=1e-6)


def test_simulated_years_can_be_made_again(folder, tmp_path):
    words = ["simulate", "--students", "60", "--cohorts", "3", "--seed", "1"]
    assert main(["roommates", *words, "--out", str(tmp_path)]) == 0
    for name in ("survey_2.csv", "pairs_3.csv", "weights.csv", "schema.json"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_years_of_one_file_are_paired_under_the_same_weights(capsys, monkeypatch, tmp_path):
    """Weights that were scaled to each year alone differed, and the file held the last year's."""
    answers = random_survey(61, 2, Hall=tuple("NS" * 30 + "N"))
    write_survey_csv(tmp_path / "all.csv", answers)
    years = []

    def record(cohort, **options):
        years.append(simulate_pairs(cohort, **options))
        return years[-1]

    monkeypatch.setattr("engine.cli.simulate.simulate_pairs", record)
    words = ("simulate", "--responses", tmp_path / "all.csv", "--cohorts", "3", "--same", "Hall")
    code, told, _ = call(capsys, *words, "--out", tmp_path / "made")
    assert code == 0
    assert told["students"] == 21
    assert told["cohorts"] == 3
    assert 2 * told["pairs"] + told["left_over"] == 61
    written = [float(row["distance_weight"]) for row in read(tmp_path / "made" / "weights.csv")]
    for year in years:
        assert year.distance_weights.tolist() == pytest.approx(written, abs=1e-6)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cohorts", "31"], "--cohorts: 31 years of 2 students need 62, but"),
        (["--cohorts", "2", "--students", "40"], "--cohorts: 2 years of 40 students need 80, but"),
    ],
)
def test_more_years_than_students_are_refused_before_anything_is_written(
    capsys, tmp_path, words, sentence
):
    rows = ["id,Tidiness,Smokes", *(f"N{k:02d},{1 + k % 5},{k % 2}" for k in range(61))]
    (tmp_path / "all.csv").write_text("\n".join(rows))
    made = tmp_path / "made"
    code, _, error = call(
        capsys, "simulate", "--responses", tmp_path / "all.csv", *words, "--out", made
    )
    assert code == 2
    assert sentence in error
    assert error.rstrip().endswith("has 61.")
    assert not made.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "--cohort", "only.csv", "--out", "m.npz"], "expected SURVEY.csv:PAIRS.csv"),
        (["train", "--cohort", "no.csv:p.csv", "--out", "m.npz"], "no.csv cannot be read"),
        (["simulate", "--students", "7", "--out", "x"], "even number of students"),
        (["simulate", "--students", "60", "--strength", "nan", "--out", "x"], "--strength"),
        (["simulate", "--students", "60", "--strength", "inf", "--out", "x"], "--strength"),
        (["simulate", "--students", "60", "--cohorts", "0", "--out", "x"], "--cohorts"),
        (["simulate", "--responses", "r.csv", "--cohorts", "0", "--out", "x"], "--cohorts"),
        (["simulate", "--responses", "r.csv", "--students", "-3", "--out", "x"], "--students"),
        (["assign", "--survey", "s.csv", "--model", "m.npz", "--out", "p.csv"], "no such file"),
        (["simulate", "--responses", "r.csv", "--blanks", "0.1", "--out", "x"], "--blanks cannot"),
        (["simulate", "--responses", "r.csv", "--strength", "8", "--out", "x"], "--strength cann"),
        (["simulate", "--students", "60", "--same", "Hall", "--out", "x"], "--same can only be"),
        (["simulate", "--students", "60", "--schema", "s.json", "--out", "x"], "--schema can only"),
        (["train", "--cohort", "a:b", "--out", "m", "--max-seconds", "nan"], "--max-seconds"),
        (["train", "--cohort", "a:b", "--out", "m", "--lambda", "0"], "--lambda: expected"),
        (["train", "--cohort", "a:b", "--out", "m", "--gap", "inf"], "--gap: expected"),
        (["train", "--cohort", "a:b", "--out", "m", "--rho", "2"], "--rho: expected"),
        (["train", "--cohort", "a:b", "--out", "m", "--max-seconds", "-1"], "--max-seconds"),
        (["train"], "required"),
        (["dance"], "invalid choice"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(capsys, monkeypatch, tmp_path, words, sentence):
    monkeypatch.chdir(tmp_path)
    code, _, error = call(capsys, *words)
    assert code == 2
    assert sentence in error
    assert "Traceback" not in error
    assert not list(Path(tmp_path).glob("*"))


@pytest.mark.parametrize("option", ["--out", "--checkpoint"])
@pytest.mark.parametrize("place", ["", "no/file.npz"])
def test_a_place_that_cannot_be_written_is_refused_before_learning(
    folder, capsys, tmp_path, option, place
):
    files = {"--out": tmp_path / "m.npz", "--checkpoint": tmp_path / "c.npz"}
    files[option] = tmp_path / place
    words = ("train", "--cohort", f"{folder}/survey_1.csv:{folder}/pairs_1.csv")
    code, _, error = call(capsys, *words, *(word for item in files.items() for word in item))
    assert code == 2
    assert ("this is a folder" if place == "" else "does not exist") in error
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_checkpoint_is_not_overwritten(folder, capsys, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    code, _, error = call(
        capsys, "train", "--cohort", f"{folder}/survey_1.csv:{folder}/pairs_1.csv",
        "--out", tmp_path / "m.npz", "--checkpoint", tmp_path / "notes.txt",
    )  # fmt: skip
    assert code == 2
    assert "no checkpoint" in error
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_model_of_other_questions_is_refused(folder, capsys, tmp_path):
    (tmp_path / "s.csv").write_text("id,Quiet\nA,No\nB,Yes\n")
    code, _, error = call(
        capsys, "assign", "--survey", tmp_path / "s.csv", "--model", folder / "m.npz",
        "--out", tmp_path / "p.csv",
    )  # fmt: skip
    assert code == 2
    assert "Bedtime is missing" in error


def test_a_killed_training_goes_on_from_its_checkpoint(folder, capsys, tmp_path):
    words = (
        "train", "--cohort", f"{folder}/survey_1.csv:{folder}/pairs_1.csv",
        "--checkpoint", tmp_path / "state.npz", "--gap", "1e-6",
    )  # fmt: skip
    first = tmp_path / "one.npz"
    code, _, error = call(capsys, *words, "--out", first, "--max-seconds", "0")
    assert (code, first.exists()) == (1, False)
    assert "nothing was learned and no model was written" in error
    code, second, _ = call(capsys, *words, "--out", tmp_path / "two.npz")
    assert code == 0
    assert second["relative_gap"] <= 1e-6


def test_weights_come_with_intervals_drift_and_the_most_useful_questions(folder, capsys, tmp_path):
    out = tmp_path / "effects.csv"
    years = [f"{folder}/survey_{k}.csv:{folder}/pairs_{k}.csv" for k in (1, 2)]
    code, result, _ = call(
        capsys, "weights", "--cohort", years[0], "--cohort", years[1],
        "--model", folder / "m.npz", "--refits", 2, "--out", out,
    )  # fmt: skip
    assert code == 0
    rows = read(out)
    assert len(rows) == len(result["questions"]) == 14
    assert (result["pairs"], result["years"]) == (60, 2)
    assert sorted(result["most_useful_first"]) == sorted(row["question"] for row in rows)
    for row in result["questions"]:
        assert row["low"] < row["effect"] < row["high"]
        assert row["drift_low"] < row["drift"] < row["drift_high"]
        assert row["standard_error_of_refits"] > 0
        assert row["year_2_low"] < row["year_2_effect"] < row["year_2_high"]
    assert main(["roommates", "weights", "--cohort", years[0]]) == 0
    assert "30 pairs of 1 year" in capsys.readouterr().out
    code, _, error = call(capsys, "weights", "--cohort", years[0], "--refits", -1)
    assert code != 0
    assert "--refits" in error


def test_killed_intervals_go_on_from_their_checkpoint(folder, tmp_path):
    """They had no checkpoint: a killed command began again."""
    state = tmp_path / "state.npz"
    years = [f"{folder}/survey_{k}.csv:{folder}/pairs_{k}.csv" for k in (1, 2)]
    command = [
        sys.executable, "-m", "engine", "roommates", "weights", "--json", "--refits", "12",
        "--cohort", years[0], "--cohort", years[1],
    ]  # fmt: skip

    def run(*more):
        return subprocess.Popen([*command, *more], stdout=subprocess.PIPE, text=True)

    with run("--checkpoint", str(state)) as killed:
        wait_for(lambda: state.exists() or killed.poll() is not None)
        killed.kill()
        printed, _ = killed.communicate()
    assert printed == ""  # it was not over
    with run("--checkpoint", str(state)) as again, run() as undisturbed:
        found, expected = (
            json.loads(process.communicate(timeout=PATIENCE_SECONDS)[0].splitlines()[-1])
            for process in (again, undisturbed)
        )
    assert [process.returncode for process in (again, undisturbed)] == [0, 0]
    assert found["most_useful_first"] == expected["most_useful_first"]
    for row, other in zip(found["questions"], expected["questions"], strict=True):
        error = other["standard_error"]
        for name in ("effect", "low", "high", "drift", "year_1_effect"):
            assert row[name] == pytest.approx(other[name], abs=0.01 * error)
