"""What the code imports is what `pyproject.toml` and `requirements.txt` ask for."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OWN = {"engine", "webapp", "tasks", "manage"}
# Parts of what is asked for: each comes with the name behind it, in every version.
BROUGHT = {
    "billiard": "celery",
    "kombu": "celery",
    "llvmlite": "numba",
    "botocore": "boto3",
    "pydantic-core": "pydantic",
}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=~! ;]", name)[0]).lower()


def is_for_checker(node: ast.AST) -> bool:
    """Return True for a block that only the type checker reads."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def imported(folder: str) -> set[str]:
    """The distributions that the files of a folder import, wherever in the file."""
    modules = set()
    for path in (ROOT / folder).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        unread = {
            id(node) for part in ast.walk(tree) if is_for_checker(part) for node in ast.walk(part)
        }
        for node in ast.walk(tree):
            if id(node) in unread:
                continue
            if isinstance(node, ast.Import):
                modules |= {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                modules.add(node.module.split(".")[0])
    modules -= OWN | set(sys.stdlib_module_names)
    homes = packages_distributions()
    found = {plain(homes[module][0]) if module in homes else module for module in modules}
    return {BROUGHT.get(name, name) for name in found}


@pytest.mark.parametrize(
    ("folders", "extras"),
    [
        (("engine",), ("hosts", "heic", "tables", "outlines", "microscopes", "network", "onnx")),
        (("webapp", "tasks"), ("web",)),
    ],
)
def test_every_import_is_asked_for(folders: tuple[str, ...], extras: tuple[str, ...]) -> None:
    asked = [*PROJECT["dependencies"]]
    for extra in extras:
        asked += PROJECT["optional-dependencies"][extra]
    missing = set().union(*(imported(folder) for folder in folders))
    missing -= {plain(name) for name in asked}
    assert not missing


def test_what_is_asked_for_is_pinned_once() -> None:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = [plain(line) for line in lines if line and not line.startswith("#")]
    assert len(pinned) == len(set(pinned))
    extras = PROJECT["optional-dependencies"]
    wanted = {plain(name) for name in (*PROJECT["dependencies"], *extras["web"])}
    assert wanted <= set(pinned)
