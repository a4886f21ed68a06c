"""The wheel works in an environment with nothing but what it asks for; no network is needed."""

import re
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import importlib.util, os
assert importlib.util.find_spec("django") is None
import networkx as nx, numpy as np
import engine
from engine.oracles import AssignmentOracle
assert engine.assign(np.eye(3)).weight == 3.0
assert AssignmentOracle().compute_extreme_point(np.eye(2)).value == 2.0
graph = nx.Graph()
graph.add_edge("a", "b", weight=-1.0)
assert nx.max_weight_matching(graph, backend="bethe_hall") == set()
graph.add_edge("b", "c", weight=2**60 + 1)
assert nx.max_weight_matching(graph, backend="bethe_hall") in ({("b", "c")}, {("c", "b")})
with nx.config(backend_priority=["bethe_hall"]):
    graph.add_edge("c", "d", weight=float("inf"))
    assert nx.max_weight_matching(graph) == nx.max_weight_matching(graph, backend="networkx")
print(engine.__file__)
"""


def closure(names: list[str]) -> dict[str, metadata.Distribution]:
    """The installed distributions that these need, and what those need in turn."""
    found: dict[str, metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        name = re.split(r"[^A-Za-z0-9._-]", waiting.pop(), maxsplit=1)[0].lower()
        if name in found:
            continue
        found[name] = metadata.distribution(name)
        waiting += [need for need in found[name].requires or [] if "extra ==" not in need]
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what it is made of."""
    if int(metadata.version("setuptools").split(".")[0]) < 77:
        pytest.skip("building needs setuptools 77")
    source = tmp_path_factory.mktemp("source")
    hidden = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "engine", source / "engine", ignore=hidden)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    words = ["-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index", "."]
    subprocess.run([sys.executable, *words, "-w", "out"], cwd=source, check=True)
    (built,) = (source / "out").glob("*.whl")
    return built


def test_only_engine_and_its_description_are_at_the_top(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"engine"}
    assert {"engine/py.typed", "engine/__init__.pyi"} <= set(names)


def test_it_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "empty"
    venv.create(place, with_pip=False)
    (site,) = place.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    needs = metadata.PathDistribution(next(site.glob("*.dist-info"))).requires or []
    core = [need for need in needs if "extra ==" not in need]
    for distribution in closure(core).values():
        for top in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
            kept = Path(str(distribution.locate_file(top)))
            if not (site / top).exists():
                (site / top).symlink_to(kept)
    answer = subprocess.run(
        [place / "bin" / "python", "-I", "-c", PROGRAM],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert answer.returncode == 0, answer.stderr
    assert Path(answer.stdout.strip()).is_relative_to(place)
