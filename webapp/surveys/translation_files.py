"""Files of translations: the use of every column, and the effect of the file on a questionnaire."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from django.conf.locale import LANG_INFO
from django.utils.translation import gettext

from engine.tabular.table import Table
from webapp.common.formats import listed
from webapp.surveys.models import Questionnaire
from webapp.surveys.services.translations import (
    LANGUAGES,
    MAX_LANGUAGES,
    MAX_TEXT,
    TEXT,
    all_texts,
    fixed_and_changed,
    fixed_words,
    spaced,
)
from webapp.tabular.tables_out import without_mark

UNKNOWN, IGNORE = "unknown", "ignore"
_QUOTED = 40  # letters of a text in a sentence
_CODES = {
    name.casefold(): code
    for code in LANGUAGES
    for name in (code, str(LANG_INFO[code]["name"]), LANGUAGES[code])
}


@dataclass(frozen=True, slots=True)
class TextChange:
    """A text of the questionnaire with its translation before and after; "" is none."""

    text: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class LanguageChanges:
    """The effect of a file on one language; ``n_same`` translations stay as they are."""

    code: str
    added: tuple[TextChange, ...]
    changed: tuple[TextChange, ...]
    missing: tuple[TextChange, ...]
    n_same: int

    @property
    def name(self) -> str:
        """The language in its own words."""
        return LANGUAGES[self.code]

    @property
    def changes(self) -> bool:
        """Return True if a translation is added, changed or removed."""
        return bool(self.added or self.changed or any(one.old for one in self.missing))


@dataclass(frozen=True, slots=True)
class TranslationFile:
    """The content of a file under the chosen uses of its columns.

    ``translations`` is {language: {text: translation}}. ``problems`` prevent the use of the texts;
    ``notes`` name what is left out.
    """

    translations: dict[str, dict[str, str]] = field(default_factory=dict)
    languages: tuple[LanguageChanges, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def can_use(self) -> bool:
        """Return True if the file changes something and no problem prevents it."""
        return not self.problems and any(one.changes for one in self.languages)


@dataclass(slots=True)
class _Reading:
    """The cells of a file that are understood, and the sentences on the others."""

    found: dict[str, dict[str, str]] = field(default_factory=dict)
    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    n_unknown: int = 0  # rows with a translation of no text of the questionnaire
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def uses_of_columns(questionnaire: Questionnaire) -> dict[str, str]:
    """Return {value: label} of the uses that a column of a file can have."""
    own = questionnaire.content.language
    languages = {code: name for code, name in LANGUAGES.items() if code != own}
    return {
        UNKNOWN: gettext("Choose a use"),
        TEXT: gettext("The text as it is written"),
        IGNORE: gettext("Leave out"),
        **languages,
    }


def guess_uses(questionnaire: Questionnaire, table: Table) -> list[str]:
    """Return a use for every column: the texts, a language by its code or name, or unknown."""
    own = questionnaire.content.language
    titles = [title.strip().casefold() for title in table.header]
    uses = [TEXT if title == TEXT else _CODES.get(title, UNKNOWN) for title in titles]
    instead = UNKNOWN if TEXT in uses else TEXT  # a column in the questionnaire's own language
    return [instead if use == own else use for use in uses]


def read_translations(
    questionnaire: Questionnaire, table: Table, uses: Sequence[str]
) -> TranslationFile:
    """Return the changes that a file makes to the translations of a questionnaire."""
    allowed = uses_of_columns(questionnaire)
    uses = [use if use in allowed else UNKNOWN for use in uses]
    problems = list(_problems_of_columns(table, uses))
    if problems:
        return TranslationFile(problems=tuple(problems))
    reading = _read_rows(questionnaire, table, uses)
    filled = {code: texts for code, texts in reading.found.items() if texts}
    if not filled and not reading.problems:
        reading.problems.append(
            gettext("No text of the file is in this questionnaire.")
            if reading.n_unknown
            else gettext("The file holds no translation.")
        )
    kept = questionnaire.content.translations | filled
    reading.problems += [fixed_words(*one) for one in fixed_and_changed(questionnaire, kept)]
    if len(kept) > MAX_LANGUAGES:
        most = gettext("A questionnaire has at most %(most)s languages.") % {"most": MAX_LANGUAGES}
        reading.problems.append(most)
    languages = tuple(_changes(questionnaire, code, texts) for code, texts in filled.items())
    if languages and not reading.problems and not any(one.changes for one in languages):
        reading.notes.insert(0, gettext("The questionnaire has exactly these texts already."))
    return TranslationFile(filled, languages, tuple(reading.problems), tuple(reading.notes))


def _problems_of_columns(table: Table, uses: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for every column without a use, and for uses that are absent or doubled."""
    for title, use in zip(table.header, uses, strict=True):
        if use == UNKNOWN:
            yield gettext(
                "Column “%(column)s” is in no language that can be added: choose its language, or "
                "leave it out."
            ) % {"column": title[:_QUOTED]}
    if TEXT not in uses:
        yield gettext("No column holds the texts as they are written: choose it.")
    for use in dict.fromkeys(uses):
        titles = [title for title, own in zip(table.header, uses, strict=True) if own == use]
        if len(titles) > 1 and use not in (UNKNOWN, IGNORE):
            names = listed([f"“{title[:_QUOTED]}”" for title in titles])
            yield gettext("The columns %(columns)s have the same use: leave one of them.") % {
                "columns": names
            }
    if not set(uses) - {UNKNOWN, TEXT, IGNORE} and UNKNOWN not in uses:
        yield gettext("No column holds a language: choose the language of at least one column.")


def _read_rows(questionnaire: Questionnaire, table: Table, uses: Sequence[str]) -> _Reading:
    """Return the translations of known texts, with a sentence for each row that is left out."""
    known = {spaced(text): text for text in all_texts(questionnaire)}
    columns = [(k, use) for k, use in enumerate(uses) if use not in (TEXT, IGNORE)]
    reading = _Reading({use: {} for _, use in columns})
    place = list(uses).index(TEXT)
    for number, cells in zip(table.row_numbers, table.rows, strict=True):
        filled = [(k, use, without_mark(cells[k])) for k, use in columns if cells[k].strip()]
        if not filled:
            continue
        written = without_mark(cells[place])
        text = known.get(spaced(written))
        if text is None:
            reading.n_unknown += 1
            why = (
                gettext("this questionnaire has no text “%(text)s”. The row is left out.")
                % {"text": spaced(written)[:_QUOTED]}
                if written.strip()
                else gettext("the cell is empty. The row is left out.")
            )
            reading.notes.append(_at(number, table.header[place], why))
            continue
        for k, use, said in filled:
            _read_cell(reading, text, use, said, number, table.header[k])
    for k, use in columns:
        if not any(row[k].strip() for row in table.rows):
            reading.notes.append(
                gettext("Column “%(column)s” holds no translation: %(language)s stays as it is.")
                % {"column": table.header[k][:_QUOTED], "language": LANGUAGES[use]}
            )
    return reading


def _read_cell(reading: _Reading, text: str, use: str, said: str, number: int, column: str) -> None:
    """Take one translation; a second one of the same text, or too long a one, is a problem."""
    said = said.strip()
    earlier = reading.found[use].setdefault(text, said)
    first = reading.rows.setdefault((use, text), number)
    shown = {"text": text[:_QUOTED], "row": f"{first:,}"}
    if earlier != said:
        why = gettext("“%(text)s” has another translation in row %(row)s. Leave one of them.")
        reading.problems.append(_at(number, column, why % shown))
    elif first != number:
        why = gettext("“%(text)s” has the same translation in row %(row)s already.")
        reading.notes.append(_at(number, column, why % shown))
    elif len(said) > MAX_TEXT or "\x00" in said:
        why = gettext("a text has at most %(most)s letters.") % {"most": f"{MAX_TEXT:,}"}
        reading.problems.append(_at(number, column, why))


def _at(row: int, column: str, why: str) -> str:
    """Return a sentence that begins with its row and column."""
    return gettext("Row %(row)s, column “%(column)s”: %(why)s") % {
        "row": f"{row:,}",
        "column": column[:_QUOTED],
        "why": why,
    }


def _changes(questionnaire: Questionnaire, code: str, texts: dict[str, str]) -> LanguageChanges:
    """Return the effect of a file's translations into one language, in the order of the pages."""
    before = questionnaire.content.translations.get(code, {})
    lines = [
        TextChange(text, before.get(text, ""), texts.get(text, ""))
        for text in all_texts(questionnaire)
    ]
    return LanguageChanges(
        code,
        added=tuple(one for one in lines if one.new and not one.old),
        changed=tuple(one for one in lines if one.new and one.old and one.new != one.old),
        missing=tuple(one for one in lines if not one.new),
        n_same=sum(bool(one.new) and one.new == one.old for one in lines),
    )
