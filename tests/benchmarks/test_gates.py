"""Gates: a worse answer, a lost certificate and a slower solver are named; equal ones pass."""

import json
import sys

import pytest

from benchmarks.gates import compare
from benchmarks.gates.cases import Gate, Measurement, all_gates

STORED = {"value": 10.0, "tolerance": 0.01, "gap": 1e-5, "target": 1e-4, "cpu_seconds": 2.0}


def made_gate(value: float, gap: float = 1e-5, *, is_larger_better: bool = False) -> Gate:
    """Return a gate that measures the given answer."""
    measured = Measurement(value, 0.01, gap, 1e-4)
    return Gate("made", "case", lambda: measured, is_larger_better=is_larger_better)


@pytest.mark.parametrize(
    ("gate", "fault"),
    [
        (made_gate(10.005), None),
        (made_gate(9.0), None),
        (made_gate(10.02), "value 10 became 10.02"),
        (made_gate(11.0, is_larger_better=True), None),
        (made_gate(9.9, is_larger_better=True), "value 10 became 9.9"),
        (made_gate(10.0, 9e-5), None),
        (made_gate(10.0, 2e-4), "gap 1e-05 became 0.0002, target 0.0001"),
    ],
)
def test_it_names_what_became_worse(gate: Gate, fault: str | None) -> None:
    _, _, faults = compare.compare([gate], {"made: case": STORED}, None, 1)
    assert faults == ([] if fault is None else [f"made: case: {fault}"])


def test_a_gate_that_was_never_stored_passes() -> None:
    records, _, faults = compare.compare([made_gate(3.0)], {}, None, 1)
    assert faults == []
    assert records["made: case"]["value"] == 3.0


@pytest.mark.parametrize(
    ("now", "before", "is_slower"),
    [(2.2, 2.0, True), (2.09, 2.0, False), (0.04, 0.01, False), (1.0, 2.0, False)],
)
def test_times_are_compared_above_the_noise(now: float, before: float, is_slower: bool) -> None:
    slower = compare.is_slower({"cpu_seconds": now}, {"cpu_seconds": before})
    assert slower is is_slower


def test_every_short_gate_is_stored() -> None:
    stored = json.loads(compare.STORED.read_text(encoding="utf-8"))["gates"]
    missing = [compare.key_of(g) for g in all_gates() if g.is_short]
    assert [key for key in missing if key not in stored] == []


def test_names_of_gates_are_unique() -> None:
    keys = [compare.key_of(gate) for gate in all_gates()]
    assert len(set(keys)) == len(keys)


def test_the_command_compares_one_group_with_what_is_stored(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "compile_kernels", lambda: None)
    monkeypatch.setattr(sys, "argv", ["compare", "--groups", "map_estimates"])
    with pytest.raises(SystemExit) as ended:
        compare.main()
    assert ended.value.code == 0
    assert "2 gates hold" in capsys.readouterr().out
