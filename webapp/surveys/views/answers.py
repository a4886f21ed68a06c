"""Staff pages of students' answers: texts, by person, by question, as a file."""

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.cohorts.naming import check_may_name, may_see_names
from webapp.common.decorators import staff_required
from webapp.common.kept_forms import keeps_typed
from webapp.common.listing import list_page, page_at
from webapp.common.selectors import get_or_404, get_owned_or_404
from webapp.common.toasts import toast
from webapp.files.downloads import download
from webapp.files.file_headers import as_attachment, plain_name
from webapp.surveys.answer_files import file_read
from webapp.surveys.forms import MarkForm, NeedForm
from webapp.surveys.models import AnswerFile, Questionnaire
from webapp.surveys.names import look_noted, search_noted
from webapp.surveys.questions import questions_of
from webapp.surveys.selectors.answers import (
    SHOWN,
    STATES,
    PeopleFilter,
    Text,
    TextFilter,
    answer_table,
    answers_of,
    known_needs,
    n_open_texts,
    neighbours,
    people_found,
    state_in_words,
    text_table,
    texts_found,
)
from webapp.surveys.selectors.progress import question_states
from webapp.surveys.selectors.requests import request_lines
from webapp.surveys.services.written import written_as_need, written_handle
from webapp.tabular.tables_out import Rows, table_file

KEPT = ("q", "question", "show", "page")  # parameters of the page of texts


def _context(found: Questionnaire, part: str, **more: Any) -> dict[str, Any]:
    return {
        "questionnaire": found,
        "tab": "answers",
        "part": part,
        "n_open_texts": n_open_texts(found),
        **more,
    }


@require_safe
@staff_required
def texts(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the texts in students' own words, those not handled first."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    wanted = TextFilter.of(request.GET, by_name=may_see_names(request.user))
    page = page_at(texts_found(found, wanted), request.GET.get("page"))
    written = [q for q in questions_of(found.content) if q.is_written]
    people = {text.person.pk: text.person for text in page.object_list}
    audit(request.user, "read answers", found, people=len(people))
    search_noted(request.user, found, wanted.query, people.values())
    context = _context(
        found,
        "texts",
        page=page,
        wanted=wanted,
        shown=SHOWN,
        written=written,
        kept=[(name, request.GET[name]) for name in KEPT if request.GET.get(name)],
    )
    return render(request, "surveys/answers/texts.html", context)


@require_POST
@staff_required
def handle(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Mark chosen texts as handled."""
    return _marked(request, uuid, MarkForm.typed(request), is_handled=True)


@require_POST
@staff_required
def reopen(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Mark chosen texts as open again; the address of Undo leads here."""
    form = MarkForm.typed(request)
    return _marked(request, uuid, form if form.sent else MarkForm(request.GET), is_handled=False)


def _marked(
    request: SignedInRequest, uuid: str, form: MarkForm, *, is_handled: bool
) -> HttpResponse:
    found = get_owned_or_404(Questionnaire, request.user, uuid)

    def act(*, text: list[int], **_: Any) -> None:
        count = written_handle(
            user=request.user, questionnaire=found, keys=text, is_handled=is_handled
        )
        words = (
            ngettext(
                "%(count)s text is marked as handled.",
                "%(count)s texts are marked as handled.",
                count,
            )
            if is_handled
            else ngettext(
                "%(count)s text is marked as to be read again.",
                "%(count)s texts are marked as to be read again.",
                count,
            )
        )
        undo = reverse("surveys:texts-reopen", args=[found.pk]) if is_handled else ""
        toast(
            request,
            words % {"count": f"{count:,}"},
            undo_url=f"{undo}?{urlencode([('text', key) for key in text])}" if undo else "",
        )

    form.press(request, act)
    sent = form.cleaned_data
    if sent.get("person") is not None:
        return redirect("surveys:answers-person", found.pk, sent["person"])
    query = urlencode([(name, sent[name]) for name in KEPT if sent.get(name)])
    return redirect(f"{reverse('surveys:texts', args=[found.pk])}?{query}")


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def need(request: SignedInRequest, uuid: str, text: int) -> HttpResponse:
    """Turn a text into a need of its student."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    row = get_or_404(found.written_answers.select_related("participant"), text)
    questions = {question.key: question for question in questions_of(found.content)}
    question = questions[row.key]
    shown = Text(row, question, question.in_words(row.participant.answers.get(row.key)))
    form = NeedForm.typed(request, known=known_needs(found), initial={"need": row.need})
    if request.method == "POST" and form.is_valid():

        def act() -> None:
            need = form.cleaned_data["need"]
            toast(
                request,
                written_as_need(user=request.user, questionnaire=found, written=row, need=need),
            )

        if form.attempt(act):
            return redirect("surveys:texts", found.pk)
    context = _context(found, "texts", text=shown, form=form)
    return render(request, "surveys/answers/need.html", context, status=form.status)


@require_safe
@staff_required
def people(request: SignedInRequest, uuid: str) -> HttpResponse:
    """List the people of a questionnaire with their progress, searched and filtered."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    wanted = PeopleFilter.of(request.GET, by_name=may_see_names(request.user))
    listing = list_page(people_found(found, wanted), request.GET, search=())
    questions = [question for question in questions_of(found.content) if question.options]
    chosen = next((q for q in questions if q.key == wanted.question), None)
    audit(request.user, "read answers", found, people=len(listing.rows))
    search_noted(request.user, found, wanted.query, listing.rows)
    context = _context(
        found,
        "people",
        rows=[(one, state_in_words(one)) for one in listing.rows],
        page=listing.page,
        wanted=wanted,
        states=[(key, words) for key, (words, _) in STATES.items()],
        chosen=chosen,
        option=chosen.options[wanted.option]
        if chosen and wanted.option is not None and wanted.option < len(chosen.options)
        else "",
        query=urlencode([(k, v) for k, v in request.GET.items() if k != "page"]),
    )
    return render(request, "surveys/answers/people.html", context)


@require_safe
@staff_required
def person(request: SignedInRequest, uuid: str, person: int) -> HttpResponse:
    """Show all answers of one person."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    one = get_or_404(found.participants.select_related("cohort"), person)
    audit(request.user, "read answers", found, people=1)
    before, after = neighbours(found, one.pk)
    context = _context(
        found,
        "people",
        person=one,
        state=state_in_words(one),
        answers=answers_of(one, questions_of(found.content)),
        before=before,
        after=after,
    )
    return render(request, "surveys/answers/person.html", context)


@require_safe
@staff_required
def by_question(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show every question with the count of each answer."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    context = _context(found, "questions", states=question_states(found))
    return render(request, "surveys/answers/questions.html", context)


@require_safe
@staff_required
def requests(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the roommate requests, those against a rule first."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    lines = page_at(request_lines(found), request.GET.get("page"))
    if lines.object_list:
        look_noted(request.user, found, request.path)
    context = _context(found, "requests", page=lines)
    return render(request, "surveys/answers/requests.html", context)


@require_safe
@staff_required
def sent_file(request: SignedInRequest, uuid: str, person: int, key: str) -> HttpResponseBase:
    """Send a person's file answer, as a download."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    files = AnswerFile.objects.select_related("participant__questionnaire")
    kept = files.filter(participant__questionnaire=found, participant=person, key=key).first()
    if kept is None:
        raise Http404(gettext("There is no such file."))
    audit(request.user, "downloaded a student's file", found, person=person, question=key)
    return as_attachment(HttpResponse(file_read(kept), content_type=kept.media_type), kept.name)


@require_safe
@staff_required
def people_file(request: SignedInRequest, uuid: str, file_format: str) -> HttpResponseBase:
    """Send every answer of the people that the page's filters show, one row for each person."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    with_names = may_see_names(request.user)
    people = people_found(found, PeopleFilter.of(request.GET, by_name=with_names))
    rows = answer_table(found, people, with_names=with_names)
    return _file(request, found, "Answers", rows, file_format)


@require_safe
@staff_required
def texts_file(request: SignedInRequest, uuid: str, file_format: str) -> HttpResponseBase:
    """Send the texts that the page's filters show, one row for each text."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    with_names = may_see_names(request.user)
    texts = texts_found(found, TextFilter.of(request.GET, by_name=with_names))
    rows = text_table(texts, with_names=with_names)
    return _file(request, found, "Texts", rows, file_format)


def _file(
    request: SignedInRequest, found: Questionnaire, what: str, rows: Rows, file_format: str
) -> HttpResponseBase:
    """Send a file, with names to those who see names; refuse one while they hide names."""

    def make() -> tuple[bytes, str]:
        with_names = may_see_names(request.user)
        if with_names:
            check_may_name(request.user)
        made = table_file(what, rows, file_format)
        audit(request.user, "exported", found, what=what, format=file_format, with_names=with_names)
        return made

    name = f"{plain_name(found.title, 'questionnaire')}-{what.lower()}.{file_format}"
    page = "surveys:texts" if what == "Texts" else "surveys:answers-people"
    return download(request, make, name, back=reverse(page, args=[found.pk]))
