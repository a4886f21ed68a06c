"""The sprite holds every icon that a template names, and none that nobody names."""

import re
from collections.abc import Iterator

from webapp.instance import BASE_DIR

NAMES = (BASE_DIR / "static" / "icons" / "names.txt").read_text(encoding="utf-8").split()
SPRITE = (BASE_DIR / "static" / "icons" / "lucide.svg").read_text(encoding="utf-8")


def sources() -> Iterator[str]:
    for folder, kind in (("templates", "html"), ("webapp", "py"), ("static", "js")):
        for path in (BASE_DIR / folder).rglob(f"*.{kind}"):
            if "vendor" not in path.parts:
                yield path.read_text(encoding="utf-8")


def test_the_sprite_is_made_of_the_names() -> None:
    assert re.findall(r'<symbol id="([^"]+)"', SPRITE) == sorted(NAMES)


def test_every_icon_of_a_template_is_there() -> None:
    used = {name for text in sources() for name in re.findall(r'{% icon "([^"]+)"', text)}
    assert used
    assert used <= set(NAMES)


def test_every_icon_there_is_used() -> None:
    text = "\n".join(sources())
    assert [name for name in NAMES if not re.search(f"[\"']{re.escape(name)}[\"']", text)] == []
