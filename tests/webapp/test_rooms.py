"""In every app the same rooms: forms in forms, tables in models, and no page that writes."""

import ast
from collections.abc import Iterator
from pathlib import Path

WEBAPP = Path(__file__).resolve().parents[2] / "webapp"
FORMS = {"forms.Form", "forms.ModelForm", "Form", "ModelForm"}
WRITES = {"save", "delete", "create", "bulk_create", "bulk_update", "get_or_create"}


def parsed() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(WEBAPP.rglob("*.py")):
        if "migrations" not in path.parts:
            yield path.relative_to(WEBAPP), ast.parse(path.read_text(encoding="utf-8"))


def classes_with(bases: set[str]) -> Iterator[tuple[Path, str]]:
    """Each class of such bases, but for abstract ones, which are nobody's table."""
    for path, tree in parsed():
        for node in ast.walk(tree):
            is_one = isinstance(node, ast.ClassDef) and "abstract = True" not in ast.unparse(node)
            if is_one and bases & {ast.unparse(base) for base in node.bases}:
                yield path, node.name


def is_room(path: Path, room: str) -> bool:
    """Whether a file is APP/room.py or lies in APP/room/."""
    return path.parts[1] in {room, f"{room}.py"}


def test_forms_stand_in_forms() -> None:
    found = list(classes_with(FORMS))
    assert found
    assert not [(str(path), name) for path, name in found if not is_room(path, "forms")]


def test_tables_stand_in_models() -> None:
    found = list(classes_with({"models.Model"}))
    assert found
    assert not [(str(path), name) for path, name in found if not is_room(path, "models")]


def test_pages_write_nothing_themselves() -> None:
    """They ask a service; what a form saves is the form's."""
    writing = []
    for path, tree in parsed():
        if len(path.parts) < 2 or not is_room(path, "views"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value)
                is_rows = owner.endswith("objects") or node.func.attr in {"save", "delete"}
                if node.func.attr in WRITES and is_rows and owner not in {"form", "super()"}:
                    writing.append(f"{path}:{node.lineno} {owner}.{node.func.attr}")
    assert not writing
