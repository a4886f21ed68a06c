"""Arrows point down: a file imports only from lower layers or from its own package."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

ENGINE_LAYERS = {
    "core": 0,
    "kernels": 1,
    "graphs": 2,
    "entropies": 4,
    "oracles": 3,
    "crf": 4,
    "objectives": 5,
    "solvers": 6,
    "inference": 7,
    "structures": 8,
    "metrics": 7,
    "datasets": 7,
    "tabular": 5,
    "baselines": 9,
    "learning": 9,
    "estimators": 10,
    "rooms": 10,
    "cli": 11,
    "__init__": 11,
    "__main__": 12,
}


def imported_modules(path: Path) -> list[str]:
    """Names of the modules that a file imports, wherever in the file the import stands."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.relative_to(ROOT)}: relative imports hide the arrow"
            module = node.module or ""
            names.append(module)
            names.extend(f"{module}.{alias.name}" for alias in node.names)
    return names


def engine_part(module: str) -> str:
    """The engine package that a dotted module name belongs to."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 and pieces[1] in ENGINE_LAYERS else "__init__"


def python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", python_files("engine"), ids=lambda p: str(p.relative_to(ROOT)))
def test_engine_file_imports_only_from_lower_layers(path: Path) -> None:
    relative = path.relative_to(ROOT / "engine").with_suffix("")
    own = relative.parts[0] if relative.parts[0] in ENGINE_LAYERS else "__init__"
    for module in imported_modules(path):
        top = module.split(".")[0]
        assert top not in {"webapp", "tasks", "django", "celery"}, f"{relative} imports {module}"
        if top != "engine" or module == "engine":
            assert module != "engine" or own in {"cli", "__main__"}, f"{relative} imports the face"
            continue
        part = engine_part(module)
        if part == "__init__":
            continue  # a name re-exported by the face, listed together with the face itself
        lower = ENGINE_LAYERS[part] < ENGINE_LAYERS[own]
        assert lower or part == own, f"{relative} ({own}) imports {module} ({part})"


def test_inference_of_matchings_and_of_pairs_knows_nothing_of_factor_graphs() -> None:
    """Factor graphs are reduced to pairs of variables, never the other way round."""
    for part, others in {"matching": ("pairwise", "factors"), "pairwise": ("factors",)}.items():
        for path in python_files(f"engine/inference/{part}"):
            for module in imported_modules(path):
                found = module.removeprefix("engine.inference.").split(".")[0]
                assert found not in others, f"{path.relative_to(ROOT)} imports {module}"


@pytest.mark.parametrize("folder", ["webapp", "tasks"])
def test_web_and_tasks_know_problems_and_answers_but_no_algorithm(folder: str) -> None:
    """They import the face, and what describes data, learns and places; never what solves."""
    known = {
        "__init__",
        "core",
        "crf",
        "datasets",
        "inference",
        "learning",
        "metrics",
        "rooms",
        "tabular",
    }
    for path in python_files(folder):
        for module in imported_modules(path):
            if module.split(".")[0] == "engine":
                part = engine_part(module)
                assert part in known, f"{path.relative_to(ROOT)} imports {module}"


def test_webapp_imports_no_task_module_but_through_the_queue() -> None:
    """Only the job queue knows Celery; everything else enqueues through its services."""
    for path in python_files("webapp"):
        if path.relative_to(ROOT).parts[:2] == ("webapp", "jobs"):
            continue
        for module in imported_modules(path):
            assert module.split(".")[0] not in {"tasks", "celery"}, f"{path} imports {module}"


def test_the_web_application_has_no_circle_of_imports() -> None:
    """Imports inside functions and for types only count as well; CycleError names the circle."""
    paths = [*python_files("webapp"), *python_files("tasks")]
    names = {
        ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p
        for p in paths
    }
    arrows = {
        name: (set(imported_modules(path)) & names.keys()) - {name} for name, path in names.items()
    }
    TopologicalSorter(arrows).prepare()


def test_common_knows_no_application() -> None:
    """Below it lie organisations and users, and what needs no organisation."""
    allowed = {
        "common": (
            "accounts.models",
            "accounts.requests",
            "database",
            "encryption",
            "monitoring",
            "checks",
            "translation",
        ),
        "translation": (),
        "charts": ("common.formats", "translation.lazy"),
        "encryption": ("monitoring.masking",),
        "monitoring": ("database",),
        "database": (),
    }
    for folder, lower in allowed.items():
        for path in python_files(f"webapp/{folder}"):
            for module in imported_modules(path):
                name = module.removeprefix("webapp.")
                is_known = name == module or any(
                    f"{name}.".startswith(f"{known}.") or known.startswith(f"{name}.")
                    for known in (folder, *lower)
                )
                assert is_known, f"{path.relative_to(ROOT)} imports {module}"
    for name in ("models", "requests", "names"):
        modules = imported_modules(ROOT / f"webapp/accounts/{name}.py")
        assert not [module for module in modules if module.startswith("webapp.common")]


def test_common_stays_small() -> None:
    """A file that belongs to one concept goes into the package of that concept."""
    assert len(python_files("webapp/common")) < 40
