"""Compare the engine's answers, bounds, gaps and CPU seconds with the stored ones.

    python -m benchmarks gates compare [--full] [--groups years rooms ...] [--against COMMIT]
        [--repeats 1] [--store]

Without ``--full`` only the short cases run. Answers and gaps are compared with ``stored.json``. CPU
seconds of another machine say little: ``--against COMMIT`` checks that commit out beside this tree
and solves every case with both by turns, in processes of their own. ``--store`` writes what was
measured into ``stored.json``. Exits with 1 if an answer, a certificate or a time became worse.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks.common.reporting import ROOT, machine_facts, print_machine, print_table
from benchmarks.gates.cases import Gate, all_gates, compile_kernels

STORED = Path(__file__).with_name("stored.json")
SLOWER = 1.05  # times the CPU seconds of the other commit
NOISE_SECONDS = 0.05  # differences of CPU seconds below this are the machine's
Record = dict[str, float]


def key_of(gate: Gate) -> str:
    """Return the name under which a gate is stored."""
    return f"{gate.group}: {gate.case}"


def measure(gate: Gate) -> Record:
    """Solve a case; return value, tolerance, gap, target and CPU seconds of all threads."""
    started = process_time()
    measured = gate.measure()
    return {**asdict(measured), "cpu_seconds": process_time() - started}


def find_faults(gate: Gate, now: Record, before: Record) -> list[str]:
    """Return what became worse; CPU seconds are not compared here."""
    faults = []
    worse = (
        before["value"] - now["value"] if gate.is_larger_better else now["value"] - before["value"]
    )
    if worse > before["tolerance"]:
        faults.append(f"value {before['value']:.9g} became {now['value']:.9g}")
    if now["gap"] > now["target"] and now["gap"] > 1.01 * before["gap"]:
        faults.append(f"gap {before['gap']:.3g} became {now['gap']:.3g}, target {now['target']:g}")
    return faults


def is_slower(now: Record, before: Record) -> bool:
    """Return whether CPU seconds measured by turns rose by more than the machine's noise."""
    longer = now["cpu_seconds"] - before["cpu_seconds"]
    return longer > max((SLOWER - 1.0) * before["cpu_seconds"], NOISE_SECONDS)


class OtherTree:
    """Another commit's engine and gates, in a process of its own that solves cases by name."""

    def __init__(self, commit: str, stack: ExitStack) -> None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gates-"))
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--detach", str(tree), commit)
        stack.callback(_git, "worktree", "remove", "--force", str(tree))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.gates.compare", "--serve"],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(self._process.kill)

    def measure(self, key: str) -> Record | None:
        """Return the other commit's record of a case, or None if it has no such case."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(key + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("The other commit's process ended; see its messages above.")
        answer: Record | None = json.loads(line)
        return answer


def _git(*words: str) -> None:
    subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True)


def serve() -> None:
    """Solve the cases whose names come on standard input, one JSON line each."""
    answers, sys.stdout = sys.stdout, sys.stderr
    compile_kernels()
    gates = {key_of(gate): gate for gate in all_gates()}
    for line in sys.stdin:
        gate = gates.get(line.rstrip("\n"))
        print(json.dumps(measure(gate) if gate else None), file=answers, flush=True)


def compare(
    gates: Sequence[Gate], stored: dict[str, Record], other: OtherTree | None, repeats: int
) -> tuple[dict[str, Record], list[list[Any]], list[str]]:
    """Solve all gates; return their records, a table row each, and the faults."""
    records, rows, faults = {}, [], []
    for gate in gates:
        key = key_of(gate)
        theirs: list[Record] = []
        ours: list[Record] = []
        for _ in range(repeats):
            if other is not None and (record := other.measure(key)) is not None:
                theirs.append(record)
            ours.append(measure(gate))
        now = min(ours, key=lambda record: record["cpu_seconds"])
        before = (
            min(theirs, key=lambda record: record["cpu_seconds"]) if theirs else stored.get(key)
        )
        found = find_faults(gate, now, before) if before else []
        ratio = now["cpu_seconds"] / max(before["cpu_seconds"], 1e-9) if before else None
        if theirs and before and is_slower(now, before):
            found.append(f"{before['cpu_seconds']:.2f} became {now['cpu_seconds']:.2f} CPU s")
        records[key] = now
        faults.extend(f"{key}: {fault}" for fault in found)
        earlier = [before["value"], before["gap"], before["cpu_seconds"]] if before else 3 * [None]
        row = [key, now["value"], earlier[0], now["gap"], earlier[1]]
        rows.append([*row, now["cpu_seconds"], earlier[2], ratio, "worse" if found else ""])
        print("; ".join(str(cell) for cell in rows[-1]), file=sys.stderr, flush=True)
    return records, rows, faults


def main() -> None:
    """Run the chosen gates, print a table, and exit with 1 if something became worse."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    groups = list(dict.fromkeys(gate.group for gate in all_gates()))
    parser.add_argument("--full", action="store_true", help="every case, not only the short ones")
    parser.add_argument("--groups", nargs="+", default=groups, choices=groups)
    parser.add_argument("--against", metavar="COMMIT", help="compare CPU seconds in the same run")
    parser.add_argument("--repeats", type=int, default=1, help="solve each case so often")
    parser.add_argument("--store", action="store_true", help="write what was measured")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve()
        return
    print_machine()
    gates = [g for g in all_gates() if g.group in args.groups and (args.full or g.is_short)]
    kept = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {"gates": {}}
    with ExitStack() as stack:
        other = OtherTree(args.against, stack) if args.against else None
        compile_kernels()
        records, rows, faults = compare(gates, kept["gates"], other, args.repeats)
    header = ("gate", "value", "before", "gap", "before", "CPU s", "before", "ratio", "")
    print_table("Gates", header, rows)
    if args.store:
        facts = machine_facts() | {"when": datetime.now(UTC).isoformat(timespec="seconds")}
        merged = dict(sorted({**kept["gates"], **records}.items()))
        STORED.write_text(json.dumps({**facts, "gates": merged}, indent=1) + "\n", encoding="utf-8")
    print("\n".join(faults) or f"{len(rows)} gates hold.")
    raise SystemExit(1 if faults and not args.store else 0)


if __name__ == "__main__":
    main()
