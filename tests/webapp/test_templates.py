"""Templates are read by people: one element a line, and no line that runs out of the window."""

from django.conf import settings

WIDEST = 200  # characters


def test_no_line_of_a_template_is_too_wide() -> None:
    folder = settings.BASE_DIR / "templates"
    wide = [
        f"{path.relative_to(folder)}:{number}"
        for path in sorted(folder.rglob("*.*"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > WIDEST
    ]
    assert not wide
