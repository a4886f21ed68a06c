"""Objects that several folders need come from factories; no file borrows fixtures of another."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "tests").rglob("*.py"))


def borrowed(path: Path, source: str) -> list[str]:
    """Return the imports of a file from the conftest of another folder, and of fixtures."""
    return [
        f"{path.relative_to(ROOT)}:{line}: {module} {name}".rstrip()
        for line, module, name in _imports(path, ast.parse(source))
        if _is_conftest_elsewhere(path, module) or name in _fixtures(module)
    ]


def _imports(path: Path, tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield line, module and name of every import; no name where it is the module itself."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for found in node.names:
                yield node.lineno, found.name, ""
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*above, *filter(None, [node.module])])
            for found in node.names:
                yield node.lineno, module, found.name
                yield node.lineno, f"{module}.{found.name}", ""


def _is_conftest_elsewhere(path: Path, module: str) -> bool:
    """Return True for the conftest of a folder that the file does not lie in."""
    *folders, last = module.split(".")
    is_ours = folders[:1] == ["tests"]
    return is_ours and last == "conftest" and not path.is_relative_to(ROOT.joinpath(*folders))


def _fixtures(module: str) -> set[str]:
    """Return the names of the fixtures that a module of tests defines."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    if not module.startswith("tests.") or not path.is_file():
        return set()
    return {
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(by).startswith("pytest.fixture") for by in node.decorator_list)
    }


def test_no_file_borrows_fixtures_or_a_conftest() -> None:
    assert len(FILES) > 500
    found = [line for path in FILES for line in borrowed(path, path.read_text(encoding="utf-8"))]
    assert not found, "\n".join(["Make it in tests/webapp/factories:", *found])


@pytest.mark.parametrize(
    "source",
    [
        "from tests.webapp.housing.conftest import anything",
        "def test():\n    from tests.webapp.housing.conftest import placement",
        "from tests.webapp.housing import conftest",
        "from ..housing import conftest",
        "from ..housing.conftest import placement",
        "import tests.webapp.housing.conftest",
        "from tests.webapp.conftest import bob",
        "from tests.webapp.test_addresses import ready",
        "from tests.webapp.letters.conftest import mailbox as post",
        "from .conftest import mailbox",
    ],
)
def test_what_is_borrowed_is_found(source: str) -> None:
    assert borrowed(ROOT / "tests/webapp/letters/test_made_up.py", source)


@pytest.mark.parametrize(
    "source",
    [
        "from tests.webapp.letters.conftest import Mailbox",
        "from tests.webapp.conftest import PASSWORD, make_user",
        "from tests.webapp.factories.campus import make_campus",
        "from tests.webapp.test_addresses import LINKED",
        "from .conftest import Mailbox",
        "import conftest",
    ],
)
def test_other_imports_are_not(source: str) -> None:
    assert not borrowed(ROOT / "tests/webapp/letters/test_made_up.py", source)
