"""Creating, changing, opening and closing questionnaires; each is one transaction, audited."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.selectors import get_or_none, owned_by
from webapp.identity.students import provider_for_students
from webapp.surveys.content import Content, Kind, QuestionnaireError, SectionContent, make_question
from webapp.surveys.housing_forms import FORMS, INTRODUCTION, WHO_SEES
from webapp.surveys.models import Questionnaire
from webapp.translation.lazy import gettext_lazy

BLANK = "blank"
COPY = "copy:"  # followed by the key of the questionnaire to copy
FIXED = gettext_lazy("Questions are fixed once it was open: people answered them.")
CHANGED = gettext_lazy("Somebody else changed this questionnaire meanwhile.")


def questionnaire_create(*, user: User, title: str, form: str) -> Questionnaire:
    """Create a questionnaire from a template, from another questionnaire, or without questions.

    ``form`` is a key of FORMS, BLANK, or COPY and the key of a questionnaire of the organisation.
    Raises QuestionnaireError in one sentence.
    """
    title = _checked_title(title)
    start = _start_of(user, form)
    try:
        with transaction.atomic():
            made = Questionnaire.objects.create(
                organisation=user.own_organisation, created_by=user, title=title, **start
            )
            audit(user, "made", made, form=form)
    except IntegrityError as error:
        raise _taken(title) from error
    return made


def _taken(title: str) -> QuestionnaireError:
    return QuestionnaireError(
        gettext("There is already a questionnaire called “%(title)s”.") % {"title": title}, "title"
    )


def _start_of(user: User, form: str) -> dict[str, Any]:
    """Return the initial fields of a new questionnaire."""
    around = {"introduction": INTRODUCTION, "who_sees": WHO_SEES}
    if form in FORMS:
        one = FORMS[form]
        return around | {"content": one.make(), "introduction": one.introduction}
    if form == BLANK:
        return around | {"content": Content(sections=(SectionContent(title=gettext("Questions")),))}
    copied = get_or_none(owned_by(Questionnaire, user), form.removeprefix(COPY))
    if not form.startswith(COPY) or copied is None:
        raise QuestionnaireError(gettext("Choose what to start from."), "form")
    names = ("content", "introduction", "who_sees", "contact", "takes_code", "asks_sign_in")
    return {name: getattr(copied, name) for name in names}


def _checked_title(title: str) -> str:
    title = " ".join(title.split())
    if not 1 <= len(title) <= 120:
        raise QuestionnaireError(gettext("The title has 1 to 120 letters."), "title")
    return title


def question_add(
    *, user: User, questionnaire: Questionnaire, version: int, section: int, **fields: Any
) -> None:
    """Add a question at the end of a section, before opening."""
    made = make_question(fields.pop("kind"), **fields)
    _change(
        user, questionnaire, version, "added a question",
        lambda content: content.with_question(section, made), only_before=True,
    )  # fmt: skip


def question_edit(
    *, user: User, questionnaire: Questionnaire, version: int, key: str, **fields: Any
) -> None:
    """Change a question: all of it before opening, its wording only afterwards.

    Fields that are not given are unchanged.
    """

    def change(content: Content) -> Content:
        found = content.find(key)
        kept = found.model_dump(include={"rule", "required", "low", "high"})
        kept |= {"shown_if": found.shown_if, "hint": found.hint, "reason": found.reason}
        given = {name: value for name, value in fields.items() if name != "answers"}
        answers = fields.get("answers") or found.answers
        made = make_question(found.kind, key=key, answers=answers, **(kept | given))
        if questionnaire.was_opened and made.meaning != found.meaning:
            if found.kind is Kind.CONSENT and made.text != found.text:
                raise QuestionnaireError(
                    gettext(
                        "The consent text is fixed after the first opening: people agreed to it."
                    )
                )
            raise QuestionnaireError(
                gettext("Answers and the short name are fixed once it was open: people chose them.")
            )
        return content.with_edited(made)

    _change(user, questionnaire, version, "changed a question", change)


def question_move(
    *, user: User, questionnaire: Questionnaire, version: int, key: str, step: int
) -> None:
    """Move a question one place up (-1) or down (1) within its section."""
    _change(
        user, questionnaire, version, "moved a question",
        lambda content: content.with_moved(key, step), only_before=True,
    )  # fmt: skip


def question_place(
    *, user: User, questionnaire: Questionnaire, version: int, key: str, section: int, place: int
) -> None:
    """Move a question to a place of any section, before opening; places count from 0."""
    _change(
        user, questionnaire, version, "moved a question",
        lambda content: content.with_placed(key, section, place), only_before=True,
    )  # fmt: skip


def question_remove(*, user: User, questionnaire: Questionnaire, version: int, key: str) -> None:
    """Remove a question, before opening."""
    _change(
        user, questionnaire, version, "removed a question",
        lambda content: content.without_question(key), only_before=True,
    )  # fmt: skip


def section_add(*, user: User, questionnaire: Questionnaire, version: int, title: str) -> None:
    """Add an empty section at the end, before opening."""
    _change(
        user, questionnaire, version, "added a section",
        lambda content: content.with_section(title), only_before=True,
    )  # fmt: skip


def section_rename(
    *, user: User, questionnaire: Questionnaire, version: int, section: int, title: str
) -> None:
    """Rename a section, at any time: its title does not affect the answers."""
    _change(
        user, questionnaire, version, "renamed a section",
        lambda content: content.with_title(section, title),
    )  # fmt: skip


def section_remove(*, user: User, questionnaire: Questionnaire, version: int, section: int) -> None:
    """Remove an empty section, before opening."""
    _change(
        user, questionnaire, version, "removed a section",
        lambda content: content.without_section(section), only_before=True,
    )  # fmt: skip


def change_undo(*, user: User, questionnaire: Questionnaire, version: int) -> None:
    """Undo the last change of the questions; once, and only if nobody changed them since.

    If the questionnaire was opened meanwhile, only a change of wording is undone.
    """
    before = questionnaire.before
    if before is None:
        raise QuestionnaireError(gettext("There is nothing to undo."))
    if questionnaire.was_opened and before.meaning != questionnaire.content.meaning:
        raise QuestionnaireError(FIXED)
    with transaction.atomic():
        same = Questionnaire.objects.filter(pk=questionnaire.pk, version=version)
        if not same.update(content=before, before=None, version=version + 1):
            raise QuestionnaireError(CHANGED)
        audit(user, "took a change back", questionnaire)
    questionnaire.refresh_from_db()


def _change(
    user: User,
    questionnaire: Questionnaire,
    version: int,
    verb: str,
    change: Callable[[Content], Content],
    *,
    only_before: bool = False,
) -> None:
    """Store a changed content if nobody stored another since ``version``."""
    if only_before and questionnaire.was_opened:
        raise QuestionnaireError(FIXED)
    before: Content = questionnaire.content
    if questionnaire.version != version:
        raise QuestionnaireError(CHANGED)
    content = change(before)
    with transaction.atomic():
        same = Questionnaire.objects.filter(pk=questionnaire.pk, version=version)
        if only_before:  # it may have been opened since it was read
            same = same.filter(Q(opens_at=None) | Q(opens_at__gt=timezone.now()))
        if not same.update(content=content, before=before, version=version + 1):
            raise QuestionnaireError(CHANGED)
        audit(user, verb, questionnaire)
    questionnaire.refresh_from_db()


def questionnaire_settle(
    *,
    user: User,
    questionnaire: Questionnaire,
    title: str,
    introduction: str,
    who_sees: str,
    contact: str,
    takes_code: bool,
    asks_sign_in: bool = False,
) -> None:
    """Change the settings of a questionnaire other than its questions."""
    title = _checked_title(title)
    if asks_sign_in and provider_for_students(questionnaire.organisation_id) is None:
        raise QuestionnaireError(
            gettext("No provider of your organisation takes students."), "asks_sign_in"
        )
    if max(len(introduction), len(who_sees)) > 2_000 or len(contact) > 254:
        raise QuestionnaireError(gettext("These texts have at most 2,000 letters."))
    try:
        with transaction.atomic():
            Questionnaire.objects.filter(pk=questionnaire.pk).update(
                title=title,
                introduction=introduction.strip(),
                who_sees=who_sees.strip(),
                contact=contact.strip(),
                takes_code=takes_code,
                asks_sign_in=asks_sign_in,
            )
            audit(user, "changed", questionnaire)
    except IntegrityError as error:
        raise _taken(title) from error
    questionnaire.refresh_from_db()


def questionnaire_open(
    *,
    user: User,
    questionnaire: Questionnaire,
    closes_at: datetime,
    opens_at: datetime | None = None,
) -> None:
    """Open a questionnaire now or later until a time, or change the end of an open one."""
    begin = questionnaire.opens_at if questionnaire.was_opened else opens_at or timezone.now()
    if not questionnaire.content.questions:
        raise QuestionnaireError(gettext("The questionnaire has no question yet."))
    if begin is None or closes_at <= max(begin, timezone.now()):
        raise QuestionnaireError(
            gettext("It has to close after it opens, and later than now."), "closes_on"
        )
    with transaction.atomic():
        Questionnaire.objects.filter(pk=questionnaire.pk).update(
            opens_at=begin, closes_at=closes_at
        )
        audit(user, "opened", questionnaire, until=closes_at)
    questionnaire.refresh_from_db()


def questionnaire_close(*, user: User, questionnaire: Questionnaire) -> None:
    """Close a questionnaire now."""
    if not questionnaire.is_open:
        raise QuestionnaireError(gettext("The questionnaire is not open."))
    with transaction.atomic():
        Questionnaire.objects.filter(pk=questionnaire.pk).update(closes_at=timezone.now())
        audit(user, "closed", questionnaire)
    questionnaire.refresh_from_db()


def questionnaire_delete(*, user: User, questionnaire: Questionnaire, typed: str) -> None:
    """Remove a questionnaire with all answers for good; cohorts made from it stay."""
    if typed.strip() != questionnaire.title:
        raise QuestionnaireError(gettext("The title does not match. Nothing was removed."), "name")
    with transaction.atomic():
        audit(user, "removed", questionnaire, people=questionnaire.participants.count())
        questionnaire.delete()
