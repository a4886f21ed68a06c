"""Sources of requests and late arrivals: names of files, and of questionnaires after a word."""

from django.utils.translation import gettext as _

QUESTIONNAIRE = "Questionnaire "  # stored before the title, and compared by code


def source_in_words(source: str) -> str:
    """Return a source in the language of the page."""
    if not source.startswith(QUESTIONNAIRE):
        return source
    return _("Questionnaire %(title)s") % {"title": source.removeprefix(QUESTIONNAIRE)}
