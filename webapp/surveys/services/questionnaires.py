"""Making, changing, opening and closing questionnaires; each is one transaction with its line."""

import copy
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.identity.students import provider_for_students
from webapp.surveys.housing_forms import FORMS
from webapp.surveys.models import Questionnaire
from webapp.surveys.questions import (
    MAX_QUESTIONS,
    Kind,
    QuestionnaireError,
    new_question,
    questions_of,
)

MAX_SECTIONS = 20
_WHO_SEES = (
    "Housing staff, under a made-up id, to find you a roommate. Other students never see it. "
    "Answer for yourself: nobody else may fill this in for you."
)


def questionnaire_create(*, user: User, title: str, form: str) -> Questionnaire:
    """Make a questionnaire from one of the forms; raise QuestionnaireError in one sentence."""
    title = _checked_title(title)
    if form not in FORMS:
        raise QuestionnaireError("Choose what to start from.")
    try:
        with transaction.atomic():
            made = Questionnaire.objects.create(
                organisation=user.organisation,
                created_by=user,
                title=title,
                content=FORMS[form][2](),
                introduction="Your answers help us to find you a roommate you get along with.",
                who_sees=_WHO_SEES,
            )
            audit(user, "made", made, form=form)
    except IntegrityError as error:
        raise QuestionnaireError(f"There is already a questionnaire called “{title}”.") from error
    return made


def _checked_title(title: str) -> str:
    title = " ".join(title.split())
    if not 1 <= len(title) <= 120:
        raise QuestionnaireError("The title has 1 to 120 letters.")
    return title


def question_add(
    *, user: User, questionnaire: Questionnaire, version: int, section: int, **fields: Any
) -> None:
    """Put a question at the end of a section, before opening."""
    made = new_question(fields.pop("kind"), **fields)

    def change(content: dict[str, Any]) -> None:
        sections = content["sections"]
        if not 0 <= section < len(sections):
            raise QuestionnaireError("There is no such section.")
        if len(questions_of(content)) >= MAX_QUESTIONS:
            raise QuestionnaireError(f"A questionnaire has at most {MAX_QUESTIONS} questions.")
        _check_name(content, made["name"])
        sections[section]["questions"].append(made)

    _change(user, questionnaire, version, "added a question", change, only_before=True)


def _check_name(content: dict[str, Any], name: str, key: str = "") -> None:
    taken = {q.name.casefold() for q in questions_of(content) if q.key != key}
    if name.casefold() in taken:
        raise QuestionnaireError(f"Another question is called “{name}”.")


def question_edit(
    *,
    user: User,
    questionnaire: Questionnaire,
    version: int,
    key: str,
    name: str,
    text: str,
    hint: str,
    reason: str,
    answers: list[str],
) -> None:
    """Change a question: all of it before opening, its wording only afterwards."""

    def change(content: dict[str, Any]) -> None:
        found = _find(content, key)
        checked = new_question(
            found["kind"], name=name, text=text, answers=answers or found.get("answers", ())
        )
        if questionnaire.was_opened:
            same = checked.get("answers") == found.get("answers")
            if not same or checked["name"] != found["name"]:
                raise QuestionnaireError(
                    "Answers and the short name are fixed once it was open: people chose them."
                )
            if found["kind"] == Kind.CONSENT and checked["text"] != found["text"]:
                raise QuestionnaireError(
                    "What people agree to is fixed once it was open: they agreed to these words."
                )
        _check_name(content, checked["name"], key)
        found |= {k: v for k, v in checked.items() if k != "key"}
        found |= {"hint": hint.strip()[:300], "reason": reason.strip()[:300]}

    _change(user, questionnaire, version, "changed a question", change)


def question_move(
    *, user: User, questionnaire: Questionnaire, version: int, key: str, step: int
) -> None:
    """Move a question one place up (-1) or down (1) within its section."""

    def change(content: dict[str, Any]) -> None:
        for section in content["sections"]:
            keys = [question["key"] for question in section["questions"]]
            if key in keys:
                here, there = keys.index(key), keys.index(key) + (1 if step > 0 else -1)
                if 0 <= there < len(keys):
                    questions = section["questions"]
                    questions[here], questions[there] = questions[there], questions[here]
                return
        raise QuestionnaireError("There is no such question.")

    _change(user, questionnaire, version, "moved a question", change, only_before=True)


def question_place(
    *, user: User, questionnaire: Questionnaire, version: int, key: str, section: int, place: int
) -> None:
    """Put a question at a place of any section, before opening; places count from 0."""

    def change(content: dict[str, Any]) -> None:
        found = _find(content, key)
        if not 0 <= section < len(content["sections"]):
            raise QuestionnaireError("There is no such section.")
        for one in content["sections"]:
            one["questions"] = [q for q in one["questions"] if q["key"] != key]
        content["sections"][section]["questions"].insert(max(0, place), found)

    _change(user, questionnaire, version, "moved a question", change, only_before=True)


def section_add(*, user: User, questionnaire: Questionnaire, version: int, title: str) -> None:
    """Add an empty section at the end, before opening."""

    def change(content: dict[str, Any]) -> None:
        if len(content["sections"]) >= MAX_SECTIONS:
            raise QuestionnaireError(f"A questionnaire has at most {MAX_SECTIONS} sections.")
        content["sections"].append({"title": _section_title(content, title), "questions": []})

    _change(user, questionnaire, version, "added a section", change, only_before=True)


def section_rename(
    *, user: User, questionnaire: Questionnaire, version: int, section: int, title: str
) -> None:
    """Give a section another title, at any time: it means nothing to the answers."""

    def change(content: dict[str, Any]) -> None:
        found = _section(content, section)
        found["title"] = _section_title(content, title, but=found)

    _change(user, questionnaire, version, "renamed a section", change)


def section_remove(*, user: User, questionnaire: Questionnaire, version: int, section: int) -> None:
    """Remove an empty section, before opening."""

    def change(content: dict[str, Any]) -> None:
        found = _section(content, section)
        if found["questions"]:
            raise QuestionnaireError("Move its questions to another section first.")
        content["sections"].remove(found)

    _change(user, questionnaire, version, "removed a section", change, only_before=True)


def _section(content: dict[str, Any], section: int) -> dict[str, Any]:
    if not 0 <= section < len(content["sections"]):
        raise QuestionnaireError("There is no such section.")
    found: dict[str, Any] = content["sections"][section]
    return found


def _section_title(
    content: dict[str, Any], title: str, *, but: dict[str, Any] | None = None
) -> str:
    title = " ".join(title.split())
    if not 1 <= len(title) <= 60:
        raise QuestionnaireError("The title of a section has 1 to 60 letters.")
    others = [one["title"].casefold() for one in content["sections"] if one is not but]
    if title.casefold() in others:
        raise QuestionnaireError(f"Another section is called “{title}”.")
    return title


def change_undo(*, user: User, questionnaire: Questionnaire, version: int) -> None:
    """Take the last change of the questions back; once, and only if nobody changed them since.

    What was opened meanwhile keeps its answers: only a change of wording is taken back then.
    """
    before = questionnaire.before
    if before is None:
        raise QuestionnaireError("There is nothing to undo.")
    if questionnaire.was_opened and _meaning(before) != _meaning(questionnaire.content):
        raise QuestionnaireError("Questions are fixed once it was open: people answered them.")
    with transaction.atomic():
        same = Questionnaire.objects.filter(pk=questionnaire.pk, version=version)
        if not same.update(content=before, before=None, version=version + 1):
            raise QuestionnaireError("Somebody else changed this questionnaire meanwhile.")
        audit(user, "took a change back", questionnaire)
    questionnaire.refresh_from_db()


def _meaning(content: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (q.key, q.kind, q.name, q.answers, q.is_rule, q.kind == Kind.CONSENT and q.text)
        for q in questions_of(content)
    ]


def question_remove(*, user: User, questionnaire: Questionnaire, version: int, key: str) -> None:
    """Remove a question, before opening."""

    def change(content: dict[str, Any]) -> None:
        _find(content, key)
        for section in content["sections"]:
            section["questions"] = [q for q in section["questions"] if q["key"] != key]

    _change(user, questionnaire, version, "removed a question", change, only_before=True)


def _find(content: dict[str, Any], key: str) -> dict[str, Any]:
    for section in content["sections"]:
        for question in section["questions"]:
            if question["key"] == key:
                found: dict[str, Any] = question
                return found
    raise QuestionnaireError("There is no such question.")


def _change(
    user: User,
    questionnaire: Questionnaire,
    version: int,
    verb: str,
    change: Callable[[dict[str, Any]], None],
    *,
    only_before: bool = False,
) -> None:
    """Store a changed content if nobody stored another since ``version``."""
    if only_before and questionnaire.was_opened:
        raise QuestionnaireError("Questions are fixed once it was open: people answered them.")
    content = copy.deepcopy(questionnaire.content)
    change(content)
    with transaction.atomic():
        same = Questionnaire.objects.filter(pk=questionnaire.pk, version=version)
        if only_before:  # it may have opened since it was read
            same = same.filter(Q(opens_at=None) | Q(opens_at__gt=timezone.now()))
        before = questionnaire.content
        if not same.update(content=content, before=before, version=version + 1):
            raise QuestionnaireError("Somebody else changed this questionnaire meanwhile.")
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
    """Change what stands around the questions."""
    title = _checked_title(title)
    if asks_sign_in and provider_for_students(questionnaire.organisation_id) is None:
        raise QuestionnaireError("No provider of your organisation takes students.")
    if max(len(introduction), len(who_sees)) > 2_000 or len(contact) > 254:
        raise QuestionnaireError("These texts have at most 2,000 letters.")
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
        raise QuestionnaireError(f"There is already a questionnaire called “{title}”.") from error
    questionnaire.refresh_from_db()


def questionnaire_open(
    *,
    user: User,
    questionnaire: Questionnaire,
    closes_at: datetime,
    opens_at: datetime | None = None,
) -> None:
    """Open a questionnaire now or later until a time, or give an open one another end."""
    begin = questionnaire.opens_at if questionnaire.was_opened else opens_at or timezone.now()
    if not questions_of(questionnaire.content):
        raise QuestionnaireError("The questionnaire has no question yet.")
    if begin is None or closes_at <= max(begin, timezone.now()):
        raise QuestionnaireError("It has to close after it opens, and later than now.")
    with transaction.atomic():
        Questionnaire.objects.filter(pk=questionnaire.pk).update(
            opens_at=begin, closes_at=closes_at
        )
        audit(user, "opened", questionnaire, until=closes_at)
    questionnaire.refresh_from_db()


def questionnaire_close(*, user: User, questionnaire: Questionnaire) -> None:
    """Close a questionnaire now."""
    if not questionnaire.is_open:
        raise QuestionnaireError("The questionnaire is not open.")
    with transaction.atomic():
        Questionnaire.objects.filter(pk=questionnaire.pk).update(closes_at=timezone.now())
        audit(user, "closed", questionnaire)
    questionnaire.refresh_from_db()


def questionnaire_delete(*, user: User, questionnaire: Questionnaire, typed: str) -> None:
    """Remove a questionnaire with all answers for good; cohorts made of it stay."""
    if typed.strip() != questionnaire.title:
        raise QuestionnaireError("The title does not match. Nothing was removed.")
    with transaction.atomic():
        audit(user, "removed", questionnaire, people=questionnaire.participants.count())
        questionnaire.delete()
