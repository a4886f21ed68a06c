"""A year in which everybody has a single: each step gives an answer or one sentence."""

import csv
import io
from pathlib import Path

import pytest

from engine.cli.main import main
from tests.webapp.api.test_roommates import pairs_csv, survey_csv
from tests.webapp.factories.images import upload
from webapp.jobs.models import Job

ROSTER = ("Student ID,Room\n" + "".join(f"u{k},R{k}\n" for k in range(1, 41))).encode()


def test_programs_are_told_why_at_every_step(program_of, bob) -> None:
    program = program_of(bob)
    alone = program.post("/cohorts", file=upload("a.csv", survey_csv(40)), name="Alone").data["id"]
    pairs = program.post(f"/cohorts/{alone}/pairs", file=upload("r.csv", ROSTER))
    assert pairs.status_code == 422
    assert pairs.data["detail"] == "Nobody in this roster has a roommate. Nothing was imported."
    shared = program.post("/cohorts", file=upload("b.csv", survey_csv(40)), name="Shared").data[
        "id"
    ]
    paired = program.post(f"/cohorts/{shared}/pairs", file=upload("p.csv", pairs_csv(40)))
    assert paired.data["pairs"] == 20
    for cohorts in ([alone], [alone, shared]):
        learned = program.post("/roommate-models", {"cohorts": cohorts, "name": "M"})
        assert learned.status_code == 422
        assert learned.data["detail"].startswith("Alone has 0 pairs; at least 2 are needed")
    body = {"cohort": shared, "name": "Ours", "importance": {"Bedtime": 2.0}}
    model = program.post("/roommate-models/set", body).data["id"]
    checked = program.post(f"/roommate-models/{model}/check", {"cohort": alone})
    assert checked.status_code == 422
    assert checked.data["detail"] == "Alone has 0 pairs; at least 2 are needed to check."
    assert not Job.objects.filter(kind="roommates.learn").exists()
    proposed = program.post("/proposals", {"cohort": alone, "model": model, "name": "P"})
    assert proposed.status_code == 202, proposed.data


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "alone.csv").write_bytes(survey_csv(40))
    (tmp_path / "shared.csv").write_bytes(survey_csv(40))
    (tmp_path / "roster.csv").write_bytes(ROSTER)
    (tmp_path / "pairs.csv").write_bytes(pairs_csv(40))
    rooms = "room,beds\n" + "".join(f"R{k},1\n" for k in range(1, 41))
    (tmp_path / "rooms.csv").write_text(rooms)
    return tmp_path


def test_the_command_line_answers_or_says_why(files: Path, capsys) -> None:
    at = {name: str(files / name) for name in ("alone.csv", "roster.csv", "rooms.csv", "m.npz")}
    past = f"{files / 'shared.csv'}:{files / 'pairs.csv'}"
    assert main(["roommates", "train", "--cohort", past, "--out", at["m.npz"]]) == 0
    alone = f"{at['alone.csv']}:{at['roster.csv']}"
    year = ["--survey", at["alone.csv"], "--model", at["m.npz"]]
    for command in (
        ["train", "--cohort", alone, "--out", str(files / "n.npz")],
        ["train", "--cohort", alone, "--cohort", past, "--out", str(files / "n.npz")],
        ["weights", "--cohort", alone],
        ["evaluate", *year, "--pairs", at["roster.csv"], "--out", str(files / "check")],
    ):
        capsys.readouterr()
        assert main(["roommates", *command]) == 2
        error = capsys.readouterr().err
        assert error == "error: roster.csv: nobody in this roster has a roommate.\n"
    assert not (files / "n.npz").exists()
    out = files / "beds.csv"
    assert main(["roommates", "rooms", *year, "--rooms", at["rooms.csv"], "--out", str(out)]) == 0
    placed = list(csv.DictReader(io.StringIO(out.read_text())))
    assert {row["student"] for row in placed} == {f"u{k}" for k in range(1, 41)}
    assert len({row["room"] for row in placed}) == 40
