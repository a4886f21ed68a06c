"""Translations of a questionnaire: one column for each language, typed or read from a file."""

from collections.abc import Mapping

from django.conf.locale import LANG_INFO
from django.db import transaction
from django.utils.text import capfirst
from django.utils.translation import gettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.surveys.content import Kind, QuestionnaireError
from webapp.surveys.models import Questionnaire
from webapp.surveys.questions import languages_of, questions_of, texts_of
from webapp.tabular.tables_out import as_csv

MAX_LANGUAGES = 12
MAX_TEXT = 2_000
TEXT = "text"  # name of the column of a file that holds the texts as they are written

# Languages that Django knows by two or three letters, each by its native name.
LANGUAGES = {
    code: capfirst(str(info["name_local"]))
    for code, info in sorted(LANG_INFO.items())
    if "name_local" in info and code.isalpha()
}


def all_texts(questionnaire: Questionnaire) -> list[str]:
    """Return every text that students read, including the texts around the questions."""
    around = [questionnaire.title, questionnaire.introduction, questionnaire.who_sees]
    return list(dict.fromkeys([*(t for t in around if t), *texts_of(questionnaire.content)]))


def translations_set(
    *,
    user: User,
    questionnaire: Questionnaire,
    version: int,
    translations: Mapping[str, Mapping[str, str]],
) -> None:
    """Replace the translations into these languages; an empty mapping removes a language.

    A text that the questionnaire does not have is ignored, and white space does not count. Raises
    QuestionnaireError for an unknown language, the questionnaire's own, too long a text, or texts
    that are all unknown: they would empty the language.
    """
    own = languages_of(questionnaire.content)[0]
    kept = dict(questionnaire.content.translations)
    known = {spaced(text): text for text in all_texts(questionnaire)}
    for language, texts in translations.items():
        if language not in LANGUAGES or language == own:
            raise QuestionnaireError(
                gettext("“%(language)s” is no language that can be added.")
                % {"language": language[:20]}
            )
        given = {spaced(t): v.strip() for t, v in texts.items() if v.strip()}
        said = {known[t]: value for t, value in given.items() if t in known}
        if given and not said:
            raise QuestionnaireError(
                gettext("No text of the file is in this questionnaire. Nothing was changed.")
            )
        if any(len(value) > MAX_TEXT or "\x00" in value for value in said.values()):
            raise QuestionnaireError(
                gettext("A text has at most %(most)s letters.") % {"most": f"{MAX_TEXT:,}"}
            )
        kept[language] = said
        if not texts:
            del kept[language]
    changed = fixed_and_changed(questionnaire, kept)
    if changed:
        raise QuestionnaireError(fixed_words(*changed[0]))
    if len(kept) > MAX_LANGUAGES:
        raise QuestionnaireError(
            gettext("A questionnaire has at most %(most)s languages.") % {"most": MAX_LANGUAGES}
        )
    content = questionnaire.content.with_translations(kept)
    with transaction.atomic():
        same = Questionnaire.objects.filter(pk=questionnaire.pk, version=version)
        before = questionnaire.content
        if not same.update(content=content, before=before, version=version + 1):
            raise QuestionnaireError(gettext("Somebody else changed this questionnaire meanwhile."))
        audit(user, "translated", questionnaire, languages=sorted(translations))
    questionnaire.refresh_from_db()


def spaced(text: str) -> str:
    """Return a text with single spaces: spreadsheets change the line ends within a cell."""
    return " ".join(text.split())


def fixed_and_changed(
    questionnaire: Questionnaire, translations: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, str]]:
    """Return [(language, text)] of answers and consents whose translation must not change, but did.

    People have answered in these words; nothing is fixed before the first opening.
    """
    if not questionnaire.was_opened:
        return []
    fixed = dict.fromkeys(
        text
        for q in questions_of(questionnaire.content)
        for text in (*q.answers, *([q.text] if q.kind is Kind.CONSENT else []))
    )
    return [
        (language, text)
        for language, said in questionnaire.content.translations.items()
        for text in fixed
        if said.get(text) and translations.get(language, {}).get(text) != said[text]
    ]


def fixed_words(language: str, text: str) -> str:
    """Return why the translation of an answer cannot change."""
    return gettext("“%(text)s” is fixed in %(language)s: it was open in these words.") % {
        "text": text[:40],
        "language": LANGUAGES.get(language, language),
    }


def language_set(*, user: User, questionnaire: Questionnaire, version: int, language: str) -> None:
    """Set the language in which the questionnaire is written."""
    if language not in LANGUAGES or language in questionnaire.content.translations:
        raise QuestionnaireError(gettext("Choose a language into which it is not translated."))
    content = questionnaire.content.with_language(language)
    with transaction.atomic():
        same = Questionnaire.objects.filter(pk=questionnaire.pk, version=version)
        if not same.update(content=content, version=version + 1):
            raise QuestionnaireError(gettext("Somebody else changed this questionnaire meanwhile."))
        audit(user, "changed", questionnaire, language=language)
    questionnaire.refresh_from_db()


def write_file(questionnaire: Questionnaire) -> bytes:
    """Return the texts as CSV: one line for each text, one column for each language."""
    # In alphabetical order: PostgreSQL does not keep the order in which they were added.
    translations = dict(sorted(questionnaire.content.translations.items()))
    rows = [[TEXT, *translations]]
    for text in all_texts(questionnaire):
        rows.append([text, *(said.get(text, "") for said in translations.values())])
    return as_csv(rows)
