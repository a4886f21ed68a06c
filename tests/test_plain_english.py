"""Sentences that people read use no phrase of the list below.

Every template, page of documentation, translation, message, docstring and comment is searched.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# A phrase, and the words to use instead.
BANNED = {
    r"\bso many\b": "the number, or “at most N”",
    r"\banew\b": "again",
    r"\bof which\b": "two sentences",
    r"\b(?:is|are|be|was|were|cannot be|nobody is) told\b": "reports, shows, learns, is known",
    r"\btold apart\b": "distinguished",
    r"\bis said\b": "the page shows, the file says",
    r"\bwhat is said\b": "the text, the answer",
    r"\bwho (?:had|has|have) none\b": "people without ...",
    r"\bwhether it was\b": "whether the ... improved",
    r"\bthere no more\b": "no longer",
    r"(?:^|[.!?] )(?:Who|Whoever|What) [^.?!<>]{4,200}\.(?:\s|$)": "a noun as subject",
}
# Phrases that are right where they stand, each with the reason.
ALLOWED = {
    "What students see.",  # the end of a caption of a picture
}


# A sentence in `_()`, `{% translate %}` or `{% blocktranslate %}`.
_TRANSLATED = re.compile(
    r"(?:_\(|translate )(?P<quote>[\"'])(?P<text>.*?)(?P=quote)"
    r"|(?:{% blocktranslate[^%]*%}|{% plural %})(?P<body>.*?)(?={% (?:plural|endblocktranslate))",
    re.S,
)


def prose_of_template(text: str) -> Iterator[tuple[int, str]]:
    """Yield the text between the tags of a template, and of the attributes that are read aloud."""
    text = re.sub(
        r"{% comment.*?endcomment %}|{#.*?#}|<script.*?</script>", _lines, text, flags=re.S
    )
    for found in re.finditer(r'(?:aria-label|title|placeholder|facts)="([^"]*)"', text):
        yield text.count("\n", 0, found.start()) + 1, found[1]
    for found in _TRANSLATED.finditer(text):
        words = re.sub(r"<[^>]*>", "", found["body"] or found["text"])
        yield text.count("\n", 0, found.start()) + 1, words.strip()
    for found in re.finditer(r"[^<>]+", re.sub(r"<[^>]*>", _cut, text, flags=re.S)):
        yield text.count("\n", 0, found.start()) + 1, found[0]


def _lines(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _cut(found: re.Match[str]) -> str:
    return "<" + "\n" * found[0].count("\n") + ">"


def prose_of_document(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a page in Markdown, without code."""
    text = re.sub(r"```.*?```", _lines, text, flags=re.S)
    text = re.sub(r"`[^`\n]*`", "X", text)
    place = 1
    for paragraph in re.split(r"(\n\s*\n|\n(?=\s*(?:[-|#*]|\d+\.) ))", text):
        yield place, paragraph
        place += paragraph.count("\n")


def prose_of_code(text: str) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module that have several words, and its comments."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string[1:]


def prose_of_catalogue(text: str) -> Iterator[tuple[int, str]]:
    """Yield the originals of a catalogue of translations."""
    for place, line in enumerate(text.splitlines(), 1):
        if line.startswith("msgid "):
            yield place, line[7:-1]


KINDS = {
    "templates/**/*.html": prose_of_template,
    "docs/**/*.md": prose_of_document,
    "*.md": prose_of_document,
    "webapp/**/*.po": prose_of_catalogue,
    **dict.fromkeys(("engine/**/*.py", "tasks/**/*.py", "webapp/**/*.py"), prose_of_code),
}


def faults(prose: Iterator[tuple[int, str]]) -> Iterator[str]:
    """Yield the place, the phrase and its replacement for every banned phrase."""
    for place, text in prose:
        sentence = " ".join(text.split())
        for pattern, instead in BANNED.items():
            for found in re.finditer(pattern, sentence, re.I if pattern[0] == "\\" else 0):
                if found[0].strip(" .") + "." not in ALLOWED:
                    yield f"line {place}: “{found[0].strip()}”; write {instead}"


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_holds_a_banned_phrase(kind: str) -> None:
    files = [path for path in sorted(ROOT.glob(kind)) if "migrations" not in path.parts]
    assert files
    found = {
        str(path.relative_to(ROOT)): lines
        for path in files
        if (lines := list(faults(KINDS[kind](path.read_text(encoding="utf-8")))))
    }
    listed = "\n".join(f"{name} {line}" for name, lines in found.items() for line in lines)
    assert not found, f"\n{listed}"


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (prose_of_template, '<p title="x">Fine.</p>\n<p>Pairs are made\n anew.</p>'),
        (prose_of_template, '<p aria-label="Nobody is told">Fine.</p>'),
        (prose_of_template, '<p>{% translate "Who sees this is written below." %}</p>'),
        (
            prose_of_template,
            "{% blocktranslate %}Who sees <b>it</b> is below.{% endblocktranslate %}",
        ),
        (prose_of_document, "Fine.\n\nWhat came out is below.\n"),
        (prose_of_code, 'def f():\n    return "drawn so many times"\n'),
        (prose_of_code, 'def f():\n    """Draw it anew."""\n'),
        (prose_of_code, "x = 1  # nobody is told\n"),
        (prose_of_catalogue, 'msgid "Nobody is told."\nmsgstr "Nadie"\n'),
    ],
)
def test_every_reader_finds_a_phrase(reader: object, text: str) -> None:
    assert len(list(faults(reader(text)))) == 1


# Counts that are never one where they stand, each with the reason.
NEVER_ONE = {
    "pixels", "yes", "rows", "columns", "days", "ms",  # sizes and limits
    "holds", "takes",  # verbs
    "jobs", "images", "students", "prices", "classes",  # behind a condition, or of an "x of n"
}  # fmt: skip


def test_templates_count_by_the_filter() -> None:
    """ "1 corrected objects" stood on a page: `counted` writes the noun that fits."""
    plural = re.compile(r"\{\{ [^}]*\|(?:number|length) \}\} ([a-z]+s)\b")
    found = [
        f"{path.name}: {match[0]}"
        for path in (ROOT / "templates").rglob("*.html")
        for match in plural.finditer(_with_bound_counts(path.read_text(encoding="utf-8")))
        if match[1] not in NEVER_ONE
    ]
    assert not found


def _with_bound_counts(text: str) -> str:
    """Return a template with the numbers of its translated sentences written where they stand.

    A sentence with a singular and a plural form agrees with its number, and is left as it is.
    """

    def written(sentence: re.Match[str]) -> str:
        if "{% plural %}" in sentence[0]:
            return ""
        names = re.findall(r"(\w+)=([^\s%]*\|(?:number|length))(?=[\s%])", sentence["head"])
        body = sentence["body"]
        for name, value in names:
            body = body.replace(f"{{{{ {name} }}}}", f"{{{{ {value} }}}}")
        return body

    sentence = r"{% blocktranslate(?P<head>[^%]*)%}(?P<body>.*?){% endblocktranslate %}"
    return re.sub(sentence, written, text, flags=re.S)


def test_numbers_of_translated_sentences_are_counted_too() -> None:
    sentence = "{%% blocktranslate with a=n|number %%}%s{%% endblocktranslate %%}"
    assert "n|number }} rooms" in _with_bound_counts(sentence % "{{ a }} rooms")
    both = sentence % "{{ a }} room{% plural %}{{ a }} rooms"
    assert "rooms" not in _with_bound_counts(both)
