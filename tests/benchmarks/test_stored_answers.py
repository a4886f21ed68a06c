"""The stored result of answers under load: a short run replaces only what it measured."""

import json
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.product import answers

LOAD = {"rate": 200, "students": {"p95_ms": 108}, "staff": {"p95_ms": 289}}
KILLS = {"answers": 2409, "lost": []}


def test_a_short_run_keeps_the_other_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = tmp_path / "stored_answers.json"
    monkeypatch.setattr(answers, "STORED", stored)
    options = Namespace(people=2_400, staff=20)
    answers._store(options, {"list": 32.0}, [{**LOAD, "rate": 500}], KILLS)
    answers._store(options, {"list": 14.0}, [LOAD], {})
    found = json.loads(stored.read_text(encoding="utf-8"))
    assert [load["rate"] for load in found["loads"]] == [200, 500]
    assert found["loads"][0]["staff"] == {"p95_ms": 289}
    assert found["loads"][0]["staff_people"] == 20
    assert found["processor_ms"]["list"] == 14.0
    assert (found["kills"]["answers"], found["kills"]["lost"]) == (2409, [])
    parts = (found["processor_ms"], *found["loads"], found["kills"])
    assert all(len(part["measured"]) == 10 for part in parts)
    answers._store(options, {}, [], {"answers": 2409, "lost": ["K-00001: question 2"]})
    found = json.loads(stored.read_text(encoding="utf-8"))
    assert found["kills"]["lost"] == ["K-00001: question 2"], "a later loss is not hidden"
    assert len(found["loads"]) == 2
