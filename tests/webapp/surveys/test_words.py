"""Every word of the students' pages and mails is translated.

In the modules of these applications ``_`` marks what students read, in their language. ``gettext``
and ``gettext_lazy``, written out, mark what only staff read.
"""

import re
from pathlib import Path

from django.conf import settings

ROOT = Path(settings.BASE_DIR)
CALL = re.compile(r"\b_\(\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+)\)", re.S)
TAG = re.compile(r"{% translate (['\"])(.*?)\1 %}")
BLOCK = re.compile(r"{% blocktranslate[^%]*%}(.*?)({% plural %}.*?)?{% endblocktranslate %}", re.S)


FOR_STUDENTS = (  # modules without a sentence for staff
    "surveys/views/student_pages.py",
    "surveys/views/students.py",
    "surveys/views/walk.py",
    "surveys/answer_files.py",
    "surveys/services/answers.py",
    "surveys/services/links.py",
    "surveys/services/requests.py",
    "residents/views/students.py",
    "waiting/views/students.py",
)
FOR_STAFF = "_preview.html"  # a line above the students' pages, in the language of staff


def words() -> set[str]:
    found = set()
    apps = (ROOT / "webapp" / name for name in ("surveys", "residents", "waiting"))
    for path in (path for app in apps for path in app.rglob("*.py")):
        for call in CALL.findall(path.read_text(encoding="utf-8")):
            parts = re.findall(r'"((?:[^"\\]|\\.)*)"', call)
            found.add("".join(parts).replace('\\"', '"').replace("\\n", "\n"))
    for folder in ("surveys/student", "surveys/mails", "residents/student"):
        for path in (ROOT / "templates" / folder).glob("*"):
            if path.name == FOR_STAFF:
                continue
            text = path.read_text(encoding="utf-8")
            found |= {said for _, said in TAG.findall(text)}
            found |= {re.sub(r"{{ (\w+) }}", r"%(\1)s", said) for said, _ in BLOCK.findall(text)}
    return found


def test_every_word_is_translated_and_compiled() -> None:
    from django.utils.translation import get_language_info, gettext, override

    assert get_language_info("es")
    found = words()
    assert len(found) > 80
    with override("es"):
        missing = sorted(said for said in found if gettext(said) == said and said != "No")
    assert missing == []


def test_modules_for_students_hold_no_sentence_for_staff() -> None:
    for name in FOR_STUDENTS:
        source = (ROOT / "webapp" / name).read_text(encoding="utf-8")
        assert CALL.search(source) or "translation" in source, name
        assert not re.search(r"\bn?gettext(_lazy)?\(", source), name
