"""The documentation builds without a warning, and its reference describes every public name."""

import re
from pathlib import Path

import pytest

mkdocs_build = pytest.importorskip("mkdocs.commands.build")
from mkdocs.config import load_config  # noqa: E402

from docs.reference_pages import FACES, listed_names  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    mkdocs_build.build(config)
    return folder


@pytest.mark.parametrize("face", FACES)
def test_every_name_of_a_face_is_described(site: Path, face: str) -> None:
    page = (site / "reference" / (face or "engine") / "index.html").read_text(encoding="utf-8")
    described = set(re.findall(r'(?:id|title|href)="[^"]*?(engine\.[\w.]+)"', page))
    assert set(listed_names(face).values()) <= described


def test_pages_ask_no_other_host(site: Path) -> None:
    asked = re.compile(r'(?:src|href)="(https?://[^"]+)"[^>]*(?:rel="(?:stylesheet|preconnect)")?')
    for path in site.rglob("*.html"):
        tags = re.findall(r"<(?:script|link|img)\b[^>]*>", path.read_text(encoding="utf-8"))
        loaded = [m for tag in tags for m in asked.findall(tag) if 'rel="canonical"' not in tag]
        assert not loaded, path


def test_every_file_of_the_walk_through_the_code_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    engine = ROOT / "engine"
    homes = (ROOT, engine, engine / "solvers", engine / "objectives", ROOT / "webapp" / "jobs")
    named = set(re.findall(r"`([\w/]+\.py)`", text))
    assert len(named) > 20
    assert not [name for name in named if not any((home / name).exists() for home in homes)]
