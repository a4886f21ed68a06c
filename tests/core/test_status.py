"""Names of choices: one kind of enumeration in the whole engine."""

import ast
from pathlib import Path

from engine.core.status import Status

ENGINE = Path(__file__).resolve().parents[2] / "engine"
ENUMERATIONS = {"Enum", "IntEnum", "Flag", "IntFlag", "StrEnum"}


def test_every_enumeration_is_of_texts() -> None:
    found = {
        f"{path.relative_to(ENGINE)} {node.name}": ast.unparse(base)
        for path in ENGINE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if ast.unparse(base).rpartition(".")[2] in ENUMERATIONS
    }
    assert set(found.values()) == {"StrEnum"}, found


def test_a_status_reads_as_its_words() -> None:
    assert f"It ended by {Status.TIME_LIMIT}." == "It ended by time limit."
    assert not Status.TIME_LIMIT.is_converged
