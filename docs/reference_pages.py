"""Writes a page of the reference for each face of the engine, from the stub of its names."""

import ast
import importlib
import inspect
from pathlib import Path
from typing import get_args

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ENGINE = Path(__file__).resolve().parent.parent / "engine"
FACES = (
    "", "graphs", "structures", "oracles", "entropies", "objectives", "solvers", "inference",
    "learning", "baselines", "estimators", "datasets", "metrics", "core", "crf", "rooms",
)  # fmt: skip


def listed_names(face: str) -> dict[str, str]:
    """Return the names that ``engine.face`` lists, each with where it is defined."""
    package = ".".join(("engine", face)) if face else "engine"
    stub = ast.parse((ENGINE / face / "__init__.pyi").read_text(encoding="utf-8"))
    found = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            module = package if node.level == 1 else package.rsplit(".", node.level - 1)[0]
            found |= {name.name: f"{module}.{node.module}.{name.name}" for name in node.names}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def page_of(face: str) -> str:
    """Return the Markdown of a face's page: what it is for, then every name with its docstring.

    What a narrower face lists as well is described there, and only named by `engine` itself.
    """
    package = ".".join(("engine", face)) if face else "engine"
    purpose = ast.get_docstring(ast.parse((ENGINE / face / "__init__.py").read_text("utf-8")))
    names = listed_names(face)
    elsewhere: dict[str, str] = {}
    for other in FACES[1:] if not face else ():
        elsewhere |= dict.fromkeys(listed_names(other).values(), other)
    named = [
        f"[`{name}`][{path}] of {elsewhere[path]}"
        for name, path in names.items()
        if path in elsewhere
    ]
    described = [path for path in names.values() if path not in elsewhere]
    if not face:
        described += sorted(answers_of(names) - {*names.values(), *elsewhere})
    blocks = "\n".join(f"::: {path}\n" for path in described)
    return f"# {package}\n\n{purpose}\n\n{', '.join(named)}\n\n{blocks}"


def answers_of(names: dict[str, str]) -> set[str]:
    """Return the paths of the engine's own classes that functions among the names return."""
    found = set()
    for path in names.values():
        module, name = path.rsplit(".", 1)
        thing = getattr(importlib.import_module(module), name)
        if inspect.isfunction(thing):
            answer = inspect.signature(thing).return_annotation
            for one in (answer, *get_args(answer)):
                if inspect.isclass(one) and one.__module__.startswith("engine."):
                    found.add(f"{one.__module__}.{one.__name__}")
    return found


def address_of(face: str) -> str:
    """Return where the page of a face stands within the documentation."""
    return f"reference/{face or 'engine'}.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name the pages in the navigation, in the order in which a reader meets the faces."""
    config.nav = [*(config.nav or []), {"Reference": [address_of(face) for face in FACES]}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, which no file on disk holds."""
    for face in FACES:
        files.append(File.generated(config, address_of(face), content=page_of(face)))
    return files
