"""Steps of one person through a questionnaire: introduction, questions, review, receipt.

An address names the step by ``n``: 0 is the introduction, a number is a question, "review" and
"receipt" come last. Without it the page is the first unfinished step.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import BadRequest
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from webapp.common.parameters import whole_number
from webapp.surveys.answer_files import ACCEPT
from webapp.surveys.content import Kind, QuestionnaireError
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import (
    MAX_TEXT,
    Question,
    plain_code,
    questions_of,
    shown_questions,
)
from webapp.surveys.services.answers import (
    answer_save,
    answers_finish,
    missing_answers,
    needs_answer,
)
from webapp.surveys.services.requests import asking_for, request_decline, wish_of
from webapp.surveys.student_forms import StepForm
from webapp.surveys.views.student_pages import in_language, is_script, menu, message

INTRODUCTION, REVIEW, RECEIPT = "0", "review", "receipt"
SECONDS_A_QUESTION = 12


class Walk:
    """One request of a person who answers; ``respond`` returns the page."""

    is_preview = False

    def __init__(self, request: HttpRequest, participant: Participant, language: str) -> None:
        self.request, self.participant, self.language = request, participant, language
        self.stored: Questionnaire = participant.questionnaire
        self.questions = questions_of(self.stored.content, language)
        self.acts: dict[str, Callable[[], HttpResponse]] = {
            "next": self._next,
            "skip": self._skip,
            "back": self._back,
            "finish": self._finish,
            "accept": self._accept,
            "decline": lambda: self._decline(declines=True),
            "take-back": lambda: self._decline(declines=False),
        }

    @property
    def asked(self) -> list[Question]:
        """The questions that this person is shown, by the present answers."""
        return shown_questions(self.questions, self.participant.answers)

    @cached_property
    def questionnaire(self) -> Questionnaire:
        """The questionnaire with its title and texts in the person's language."""
        return in_language(self.stored, self.language)

    def respond(self) -> HttpResponse:
        """Return the requested page, or perform the sent act."""
        if self.request.method != "POST":
            return self._show(self.request.GET.get("n", ""))
        action = self.sent["action"] or "next"  # Enter sends a form without a button
        if action not in self.acts:
            raise BadRequest
        return self.acts[action]()

    @cached_property
    def sent(self) -> dict[str, Any]:
        """The fields of the sent form; raise BadRequest if one cannot be read."""
        form = StepForm.typed(self.request)
        if not form.is_valid():
            raise BadRequest
        return form.cleaned_data

    # -- Storage; the preview overrides it

    def keep(self, question: Question, *, is_declined: bool = False) -> None:
        """Store the sent answer to a question."""
        file = self.request.FILES.get("file")
        answer_save(
            participant=self.participant,
            question=question,
            values=self.sent["answer"],
            file=file if isinstance(file, UploadedFile) else None,
            is_declined=is_declined,
        )

    def finish(self) -> None:
        """Store that the answers are complete."""
        answers_finish(participant=self.participant)

    # -- Pages

    def _show(self, step: str) -> HttpResponse:
        number = whole_number(step)
        if number is None and step not in (REVIEW, RECEIPT):
            step = self._first_left()
            number = whole_number(step)
        if number == 0:
            return self._introduction()
        later = (q for q in self.asked if number is not None and q.number >= number)
        question = next(later, None)
        if question is not None:
            return self._question(question)
        if step != REVIEW and self.participant.finished_at:
            return self.receipt()
        return self.review()

    def _first_left(self) -> str:
        answers = self.participant.answers
        if not answers and not self.participant.finished_at:
            return INTRODUCTION
        left = next((q for q in self.asked if q.key not in answers), None)
        if left is not None and not self.participant.finished_at:
            return str(left.number)
        return RECEIPT if self.participant.finished_at else REVIEW

    def _page(
        self, name: str, context: dict[str, Any], *, is_refused: bool = False
    ) -> HttpResponse:
        shared = {
            "questionnaire": self.questionnaire,
            "participant": self.participant,
            "n_questions": len(self.asked),
            "is_preview": self.is_preview,
            **menu(self.stored),
        }
        status = 422 if is_refused else 200
        return render(self.request, f"surveys/student/{name}.html", shared | context, status=status)

    def _introduction(self) -> HttpResponse:
        seconds = SECONDS_A_QUESTION * len(self.questions)
        first = self.asked[0].number if self.asked else REVIEW
        context = {"minutes": max(1, round(seconds / 60)), "first": first}
        return self._page("introduction", context)

    def _question(self, question: Question, *, error: str = "") -> HttpResponse:
        """Show a question with the stored answer, or with the typed one if it was refused."""
        kept = self.participant.answers.get(question.key)
        sent: list[str] | None = self.sent["answer"] if error else None
        chosen = kept if isinstance(kept, list) else [kept]
        if sent is not None:
            chosen = [number for text in sent if (number := whole_number(text)) is not None]
        value = (sent[0] if sent else "") if sent is not None else kept
        asked = self.asked
        context = {
            "question": question,
            "options": [(k, option, k in chosen) for k, option in enumerate(question.options)],
            "value": "" if value is None else value,
            "place": 1 + [one.key for one in asked].index(question.key),
            "sections": _sections(asked, question.number),
            "is_skipped": question.key in self.participant.answers and kept is None and not error,
            "is_saved": question.key in self.participant.answers and not error,
            "can_skip": not needs_answer(question),
            "is_first": asked[0].key == question.key,
            "shows_who": question.is_rule or question.is_written,
            "error": error,
            "max_text": MAX_TEXT,
            "accept": ACCEPT,
            **self._request_context(question),
        }
        return self._page("question", context, is_refused=bool(error))

    def _request_context(self, question: Question) -> dict[str, Any]:
        if question.kind is not Kind.REQUEST:
            return {}
        return {
            "note": self._note(question),
            "askings": [] if self.is_preview else asking_for(self.participant),
        }

    def _note(self, question: Question) -> str:
        """Return the effect of a saved answer: a file that arrived, a request that is mutual."""
        if question.kind is Kind.FILE and "file" in self.request.FILES:
            name = question.in_words(self.participant.answers.get(question.key))
            return _("“%(name)s” has arrived.") % {"name": name}
        if question.kind is not Kind.REQUEST or self.is_preview:
            return ""
        wish = wish_of(self.participant, question.key)
        if wish is None:
            return ""
        if wish.is_mutual:
            return _("You asked for each other.")
        return _(
            "The person with the code %(code)s has not asked for you yet. Show them your code: "
            "%(own)s."
        ) % {"code": wish.code, "own": self.participant.code}

    def review(self, *, error: str = "", note: str = "") -> HttpResponse:
        """Show every answer, and the missing ones, before a person finishes."""
        answers = self.participant.answers
        lacking = {question.key for question in missing_answers(self.participant, self.questions)}
        lines = [
            {
                "question": question,
                "words": question.in_words(answers.get(question.key)),
                "is_declined": question.key in answers and answers[question.key] is None,
                "is_lacking": question.key in lacking,
            }
            for question in self.asked
        ]
        context = {"lines": lines, "error": error, "note": note} | self.link_context()
        return self._page("review", context, is_refused=bool(error))

    def receipt(self, *, error: str = "", note: str = "") -> HttpResponse:
        """Show that the answers are complete, and how to come back."""
        shows_code = any(question.kind is Kind.REQUEST for question in self.questions)
        context = {"error": error, "note": note, "shows_code": shows_code} | self.link_context()
        return self._page("receipt", context, is_refused=bool(error))

    def link_context(self) -> dict[str, Any]:
        """Return the personal link if there is one."""
        return {}

    # -- Acts

    @cached_property
    def _sent_question(self) -> Question | None:
        return next((q for q in self.asked if q.number == self.sent["n"]), None)

    def _next(self) -> HttpResponse:
        return self._keep_and_go(self._after)

    def _back(self) -> HttpResponse:
        return self._keep_and_go(self._before)

    def _skip(self) -> HttpResponse:
        return self._keep_and_go(self._after, is_declined=True)

    def _keep_and_go(
        self, where: Callable[[Question], str], *, is_declined: bool = False
    ) -> HttpResponse:
        question = self._sent_question
        if question is None:
            return self.go("")
        try:
            self.keep(question, is_declined=is_declined)
            is_missing = (
                needs_answer(question) and self.participant.answers.get(question.key) is None
            )
            goes_on = where == self._after and not self.sent["stays"]
            if is_missing and goes_on and question.kind is not Kind.CONSENT:
                raise QuestionnaireError(_("This question needs an answer."))
        except QuestionnaireError as problem:
            if is_script(self.request):
                return JsonResponse({"error": str(problem)}, status=422)
            return self._question(question, error=str(problem))
        return self.go(where(question), note=self._note(question))

    def _after(self, question: Question) -> str:
        later = (one.number for one in self.asked if one.number > question.number)
        return str(next(later, REVIEW))

    def _before(self, question: Question) -> str:
        earlier = [one.number for one in self.asked if one.number < question.number]
        return str(earlier[-1] if earlier else INTRODUCTION)

    def _finish(self) -> HttpResponse:
        try:
            self.finish()
        except QuestionnaireError as problem:
            return self.review(error=str(problem))
        return self.go(RECEIPT)

    def _accept(self) -> HttpResponse:
        """Answer a request with a request for its asker, in the first free question."""
        code = plain_code(self.sent["code"])
        own = [q for q in self.asked if q.kind is Kind.REQUEST]
        free = next((q for q in own if not self.participant.answers.get(q.key)), None)
        here = self._sent_question or (own[0] if own else None)
        if here is None:
            return self.go("")
        try:
            if free is None:
                raise QuestionnaireError(
                    _("You already ask for another person. Change that answer first.")
                )
            answer_save(participant=self.participant, question=free, values=[code])
        except QuestionnaireError as problem:
            return self._question(here, error=str(problem))
        return self.go(str(free.number))

    def _decline(self, *, declines: bool) -> HttpResponse:
        code = plain_code(self.sent["code"])
        here = self._sent_question
        try:
            request_decline(participant=self.participant, code=code, declines=declines)
        except QuestionnaireError as problem:
            if here is not None:
                return self._question(here, error=str(problem))
            return message(self.request, str(problem), self.stored, status=422, back="?")
        return self.go(str(here.number) if here else "")

    def go(self, step: str, *, note: str = "") -> HttpResponse:
        """Redirect to a step at the address that the form was sent to."""
        there = self.address(step)
        if is_script(self.request):
            return JsonResponse({"next": there, "note": note})
        return HttpResponseRedirect(there)

    def address(self, step: str) -> str:
        """Return the address of a step, with the parameters for browsers without cookies."""
        kept = {name: self.request.GET[name] for name in self.kept if name in self.request.GET}
        query = ({"n": step} if step else {}) | kept
        return f"{self.request.path}?{urlencode(query)}" if query else self.request.path

    kept: tuple[str, ...] = ()


def _sections(questions: list[Question], number: int) -> list[tuple[str, int, int]]:
    """Return [(section, its questions, its questions done)] for the progress line."""
    titles = list(dict.fromkeys(question.section for question in questions))
    found = []
    for title in titles:
        own = [question.number for question in questions if question.section == title]
        found.append((title, len(own), sum(k <= number for k in own)))
    return found
