"""Sentences that people read go through gettext, with named placeholders and with real plurals.

The syntax tree of every module of the web application is walked. Texts for programs and operators
stay English on purpose, such as log lines and the documentation of the API: the lists below say
which, and why. Sentences that jobs, histories, mails and offers store go through gettext when they
are stored, in the language of staff, and stay as they were written.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GETTEXT = {
    "_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy", "pgettext_lazy",
}  # fmt: skip
# Parts whose text stays English, each with the reason.
ENGLISH = {
    "webapp/api": "the API answers programs, in one language",
    "webapp/monitoring": "metrics and logs",
    "webapp/supervisor": "the terminal and logs",
    "webapp/encryption": "errors of settings, before any page is served",
    "webapp/files/store": "errors of the store, which jobs store and logs show",
    "webapp/operations/admin.py": "rows of tables, for operators",
    "webapp/operations/alerts.py": "mails to operators, sent by the sweep",
    "webapp/operations/backup.py": "the terminal; the job of backups stores the same sentences",
    "webapp/common/outgoing.py": "answers of mail servers, and reasons that programs compare",
    "webapp/webhooks/transport.py": "answers that a delivery stores",
    "webapp/identity/back_channel.py": "answers to identity providers, by their protocol",
    "webapp/identity/openid_connect.py": "answers of identity providers, for the log",
    "webapp/identity/outbound.py": "answers of identity providers, for the log",
    "webapp/identity/protocol_urls.py": "answers to identity providers, by their protocol",
    "webapp/identity/provider_keys.py": "answers of identity providers, for the log",
    "webapp/housing/webhook_reports.py": "what programs get",
    "webapp/surveys/housing_forms.py": "questions that questionnaires store, with their Spanish",
    "webapp/surveys/housing_forms_es.py": "the Spanish of those questions",
    "webapp/segmentation/painting/process.py": "another process, without a reader",
}
ENGLISH_FILES = {
    "exports.py": "headings that other systems read",
    "metrics.py": "descriptions of metrics",
    "demonstration.py": "a command prints it, and names of objects are stored",
}
# Calls whose texts are logged or printed, or that only programmers read.
OTHER_CALLS = re.compile(
    r"log\.\w+|audit|_audit|say|print|"
    r"(Value|Type|Key|Runtime|Assertion|Command|NotImplemented)Error|ImproperlyConfigured|"
    r"re\.\w+|render|format_html|mark_safe|StringIO|\w*Constraint|send_event"
)
# Single texts that stay English, by their module; X stands for each value.
STORED = {
    # an error for programmers
    "webapp/cohorts/models.py": {
        "This draft holds a new cohort.",
    },
    # a command prints it
    "webapp/demonstration/services.py": {
        "X will be prepared once the server runs.",
    },
    # the end of errors of the engine, which are English
    "webapp/jobs/endings.py": {
        "Nothing was saved.",
    },
    # the subject of a mail, which staff can change
    "webapp/letters/services/questions.py": {
        "Whom do you want to live with?",
    },
    # a delivery sends or stores it
    "webapp/webhooks/services.py": {
        "This is a test of a webhook. Nothing happened.",
        "The program answered that it wants no more (410).",
        "Answered X; redirects are not followed.",
        "Answered X.",
    },
}
# Calls whose text is shown, by the place of the text among the arguments.
PLACES_OF_TEXTS = {"toast": 1, "attempt": 2, "context.report": 0, "StoppedError": 0, "Progress": 0}
PARTS_OF_FORMS = {"label", "help_text", "empty_label"}
SENTENCE = re.compile(r"[A-Z“•(].* .*[.?!]")


class Finder(ast.NodeVisitor):
    """Finder of texts in one module that no catalogue can hold."""

    def __init__(self, refusals: set[str]) -> None:
        self.refusals = refusals
        self.found: list[tuple[int, str]] = []

    def visit(self, node: ast.AST) -> None:
        """Look at a node and everything below, unless its texts are of no concern here."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node, ast.FunctionDef) and node.name in ("__str__", "__repr__"):
            return  # audit lines store them
        if isinstance(node, ast.JoinedStr):
            self.check_f_string(node)
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in GETTEXT:
                self.check_call(node)
                return
            if OTHER_CALLS.fullmatch(name):
                return
            self.check_parts(node, name)
        if isinstance(node, ast.ClassDef) and _is_choices(node):
            self.check_choices(node)
        text = _text(node)
        if text is not None:
            if SENTENCE.fullmatch(text.strip()):
                self.found.append((node.lineno, text))  # type: ignore[attr-defined]
            if isinstance(node, ast.Constant):
                return
        self.generic_visit(node)

    def check_f_string(self, node: ast.JoinedStr) -> None:
        """Forbid texts of gettext within f-strings, in which xgettext does not find them."""
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in GETTEXT:
                self.found.append((node.lineno, f"within an f-string: {ast.unparse(call)}"))

    def check_call(self, node: ast.Call) -> None:
        """Require literal texts with named placeholders."""
        is_long = ast.unparse(node.func).startswith(("ngettext", "pgettext"))
        texts = node.args[:2] if is_long else node.args[:1]
        for text in texts:
            if not isinstance(text, ast.Constant):
                self.found.append((node.lineno, f"not a literal: {ast.unparse(text)}"))
            elif re.search(r"(?<!%)(%%)*%[sdif]|\{\}", str(text.value)):
                self.found.append((node.lineno, f"no names: {text.value}"))

    def check_parts(self, node: ast.Call, name: str) -> None:
        """Look at the first text of refusals and toasts, and at the words of form fields."""
        first = PLACES_OF_TEXTS.get(name, 0 if name in self.refusals else None)
        given = [] if first is None else node.args[first : first + 1]
        if name.endswith(("Field", "Select")) and not name.startswith("models."):
            given += [one.value for one in node.keywords if one.arg in PARTS_OF_FORMS]
        for one in given:
            text = _text(one)
            if text and re.search(r"[A-Za-z]{2}", text) and not SENTENCE.fullmatch(text.strip()):
                self.found.append((node.lineno, text))

    def check_choices(self, node: ast.ClassDef) -> None:
        """Look at the label of each member of a class of choices."""
        for statement in node.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Tuple):
                text = _text(statement.value.elts[-1])
                if text is not None:
                    self.found.append((statement.lineno, text))


def _is_choices(node: ast.ClassDef) -> bool:
    return any("Choices" in ast.unparse(base) for base in node.bases)


def _text(node: ast.AST) -> str | None:
    """Return the text of a string, with X for each value of an f-string; None for other nodes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
        )
    return None


def modules() -> Iterator[Path]:
    """Yield the modules whose sentences are shown to people."""
    for path in sorted((ROOT / "webapp").rglob("*.py")):
        place = path.relative_to(ROOT)
        is_left_out = (
            {"migrations", "management", "locale"} & set(place.parts)
            or len(place.parts) == 2
            or place.name in ENGLISH_FILES
            or any(place.is_relative_to(part) for part in ENGLISH)
        )
        if not is_left_out:
            yield path


def refusals() -> set[str]:
    """Return the names of the errors whose sentences are shown to people unchanged."""
    known = {"Refusal", "ValidationError", "forms.ValidationError", "InvalidProblemError"}
    bases = {}
    for path in (ROOT / "webapp").rglob("*.py"):
        for found in re.finditer(r"^class (\w+)\(([\w., ]+)\):", path.read_text("utf-8"), re.M):
            bases[found[1]] = {base.strip() for base in found[2].split(",")}
    while more := {name for name, own in bases.items() if own & known} - known:
        known |= more
    return known


def untranslatable(source: str, errors: set[str]) -> list[tuple[int, str]]:
    """Return line and text of everything in a module that people read and gettext does not see."""
    finder = Finder(errors)
    finder.visit(ast.parse(source))
    return finder.found


@pytest.mark.parametrize(
    "source",
    [
        'raise HousingError(f"{room} is taken.")',
        'raise HousingError("no room")',
        'toast(request, "Saved")',
        'context.report("Reading images")',
        'event_record(sentence=f"{student} moved to {room}.")',
        'raise StoppedError("The model was removed.")',
        'name = forms.CharField(label="Name")',
        'class State(models.TextChoices):\n    OPEN = "open", "Open"',
        'words = "The room is taken."',
        'words = _(f"{room} is taken.")',
        'words = _("%s is taken.") % room',
        "words = f\"{room} {_('is taken.')}\"",
        'words = ngettext("%d room.", "%d rooms.", n) % n',
    ],
)
def test_the_search_finds_what_gettext_does_not_see(source: str) -> None:
    assert untranslatable(source, {"HousingError"})


@pytest.mark.parametrize(
    "source",
    [
        'raise HousingError(_("%(room)s is taken.") % {"room": room})',
        'toast(request, _("Saved"))',
        'log.info("The room is taken.")',
        'def f() -> None:\n    """Return the room. Nothing else."""',
        'raise ValueError("A verb has at most 40 characters.")',
    ],
)
def test_the_search_passes_what_is_translatable(source: str) -> None:
    assert not untranslatable(source, {"HousingError"})


def test_every_exception_still_stands_for_something() -> None:
    assert [place for place in ENGLISH if not (ROOT / place).exists()] == []
    errors = refusals()
    for place, texts in STORED.items():
        source = (ROOT / place).read_text("utf-8")
        assert texts <= {text for _, text in untranslatable(source, errors)}, place


def test_sentences_are_translatable() -> None:
    errors = refusals()
    found = [
        f"{place}:{line}: {text}"
        for path in modules()
        for line, text in untranslatable(path.read_text("utf-8"), errors)
        if text not in STORED.get(place := str(path.relative_to(ROOT)), ())
    ]
    assert found == []
