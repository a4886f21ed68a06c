"""The pages of staff: build, open, invite, watch, turn into a cohort."""

from datetime import datetime, time
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.dateparse import parse_date, parse_datetime
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.cohorts.services.cohorts import CohortError
from webapp.common.decorators import administrator_required, staff_required
from webapp.common.errors import Refusal
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import attempt, toast
from webapp.identity.students import provider_for_students
from webapp.surveys.housing_forms import FORMS
from webapp.surveys.models import Mail, Participant, Questionnaire
from webapp.surveys.people import n_given_twice, withdrawn_from_cohorts
from webapp.surveys.questions import WORDS, QuestionnaireError, languages_of, questions_of
from webapp.surveys.selectors import (
    progress_of,
    question_states,
    questionnaires_of,
    requests_of,
)
from webapp.surveys.services import questionnaires as services
from webapp.surveys.services.cohorts import waiting_for_cohort
from webapp.surveys.services.translations import (
    LANGUAGES,
    MAX_FILE,
    all_texts,
    language_set,
    read_file,
    translations_set,
    write_file,
)
from webapp.surveys.views.students import in_language, render_question

TABS = ("questions", "people", "settings")
PEOPLE_SHOWN = 200


@require_GET
def questionnaire_list(request: HttpRequest) -> HttpResponse:
    """List the questionnaires of the organisation."""
    context = {"questionnaires": questionnaires_of(request.user)}
    return render(request, "surveys/list.html", context)


@require_http_methods(["GET", "POST"])
@staff_required
def new(request: HttpRequest) -> HttpResponse:
    """Choose what to start from."""
    if request.method == "POST":
        try:
            made = services.questionnaire_create(
                user=request.user,
                title=request.POST.get("title", ""),
                form=request.POST.get("form", ""),
            )
            return redirect("surveys:questionnaire", made.pk)
        except Refusal as problem:
            toast(request, str(problem), error=True)
    forms = [(key, title, words) for key, (title, words, _) in FORMS.items()]
    return render(request, "surveys/new.html", {"forms": forms, "year": timezone.now().year + 1})


@require_GET
def questionnaire(request: HttpRequest, uuid: str) -> HttpResponse:
    """Show a questionnaire: how far people are, its questions, who was invited."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    tab = request.GET.get("tab", "")
    states = question_states(found)
    selected = request.GET.get("question", "")
    chosen = next((s for s in states if s.question.key == selected), states[0] if states else None)
    mails = Mail.objects.filter(participant__questionnaire=found)
    context: dict[str, Any] = {
        "questionnaire": found,
        "tab": tab if tab in TABS else "questions",
        "states": states,
        "selected": selected,
        "chosen": chosen,
        "progress": progress_of(found),
        "n_waiting": len(waiting_for_cohort(found)),
        "kinds": [(kind.value, words) for kind, words in WORDS.items()],
        "sections": [section["title"] for section in found.content["sections"]],
        "address": request.build_absolute_uri(reverse("surveys:code", args=[found.code])),
        "n_failed": mails.filter(state=Mail.FAILED).count(),
        "n_queued": mails.filter(state__in=(Mail.WAITING, Mail.SENDING)).count(),
        "n_mails": mails.filter(state=Mail.SENT).count(),
        "zone": request.user.organisation.zone.key,
        "provider": provider_for_students(found.organisation_id),
        "languages": [LANGUAGES.get(code, code) for code in languages_of(found.content)],
        "closes_on": timezone.localtime(found.closes_at).date() if found.closes_at else None,
    }
    if tab == "people" and request.user.is_staff_member:
        context |= _people(found)
    return render(request, "surveys/questionnaire.html", context)


def _people(found: Questionnaire) -> dict[str, Any]:
    requests = requests_of(found)
    return {
        "people": found.participants.all()[:PEOPLE_SHOWN],
        "n_requests": len(requests),
        "n_given_twice": n_given_twice(found),
        "withdrawn": withdrawn_from_cohorts(found),
        "bounced": found.participants.exclude(bounced_at=None)[:PEOPLE_SHOWN],
        "n_mutual": sum(is_mutual for _, _, is_mutual in requests) // 2,
        "failed": Mail.objects.filter(participant__questionnaire=found, state=Mail.FAILED)[:50],
    }


@require_POST
@staff_required
def change(request: HttpRequest, uuid: str) -> HttpResponse:
    """Change one question, or what stands around them."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    version = found.version
    try:
        _changed(request, found)
    except (QuestionnaireError, CohortError) as problem:
        toast(request, str(problem), error=True)
    else:
        if found.version != version and request.POST.get("action") != "undo":
            undo = f"{reverse('surveys:undo', args=[found.pk])}?version={found.version}"
            toast(request, "The questions were changed.", undo_url=undo)
    if request.headers.get("X-Requested-With") == "fetch":
        return HttpResponse(status=204)
    back = reverse("surveys:questionnaire", args=[found.pk])
    tab, key = request.POST.get("tab", ""), request.POST.get("key", "")
    query = f"?tab={tab}" if tab in TABS else f"?question={key}#q-{key}" if key.isalnum() else ""
    return redirect(back + query)


def _changed(request: HttpRequest, found: Questionnaire) -> None:
    post, user = request.POST, request.user
    version = whole_number(post.get("version", "")) or 0
    action = post.get("action", "")
    common: dict[str, Any] = {"user": user, "questionnaire": found, "version": version}
    words = {name: post.get(name, "") for name in ("name", "text", "hint", "reason")}
    answers = [line for line in post.get("answers", "").splitlines() if line.strip()]
    if action == "add":
        services.question_add(
            **common,
            section=whole_number(post.get("section", "")) or 0,
            kind=post.get("kind", ""),
            answers=answers,
            rule=bool(post.get("rule")),
            **words,
        )
    elif action == "edit":
        services.question_edit(**common, key=post.get("key", ""), answers=answers, **words)
    elif action in ("up", "down"):
        step = 1 if action == "down" else -1
        services.question_move(**common, key=post.get("key", ""), step=step)
    elif action == "place":
        services.question_place(
            **common,
            key=post.get("key", ""),
            section=_position(post.get("section", "")),
            place=_position(post.get("place", "")),
        )
    elif action == "add-section":
        services.section_add(**common, title=post.get("title", ""))
    elif action == "rename-section":
        where = _position(post.get("section", ""))
        services.section_rename(**common, section=where, title=post.get("title", ""))
    elif action == "remove-section":
        services.section_remove(**common, section=_position(post.get("section", "")))
    elif action == "remove":
        services.question_remove(**common, key=post.get("key", ""))
    elif action == "settle":
        services.questionnaire_settle(
            user=user,
            questionnaire=found,
            takes_code=bool(post.get("takes_code")),
            asks_sign_in=bool(post.get("asks_sign_in")),
            **{k: post.get(k, "") for k in ("title", "introduction", "who_sees", "contact")},
        )
        toast(request, "The settings were changed.")
    else:
        raise QuestionnaireError("There is no such action.")


def _position(text: str) -> int:
    found = whole_number(text)
    return -1 if found is None else found


@require_POST
@staff_required
def undo(request: HttpRequest, uuid: str) -> HttpResponse:
    """Take the last change of the questions back."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    version = whole_number(request.GET.get("version", "")) or 0
    attempt(
        request,
        lambda: services.change_undo(user=request.user, questionnaire=found, version=version),
        "The change was taken back.",
    )
    return redirect("surveys:questionnaire", found.pk)


@require_http_methods(["GET", "POST"])
@staff_required
def languages(request: HttpRequest, uuid: str) -> HttpResponse:
    """Show the texts with a column a language; keep them, typed or from a file."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    if request.method == "POST":
        attempt(request, lambda: _translate(request, found), "The languages were kept.")
        return redirect("surveys:languages", found.pk)
    if request.GET.get("file"):
        response = HttpResponse(write_file(found), content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = 'attachment; filename="languages.csv"'
        return response
    translations = found.content.get("translations", {})
    own = languages_of(found.content)[0]
    context = {
        "questionnaire": found,
        "own": own,
        "own_words": LANGUAGES.get(own, own),
        "columns": [(code, LANGUAGES.get(code, code)) for code in translations],
        "rows": [
            (k, text, [(code, said.get(text, "")) for code, said in translations.items()])
            for k, text in enumerate(all_texts(found))
        ],
        "known": [(code, words) for code, words in LANGUAGES.items() if code not in translations],
    }
    return render(request, "surveys/languages.html", context)


def _translate(request: HttpRequest, found: Questionnaire) -> None:
    post = request.POST
    version = whole_number(post.get("version", "")) or 0
    common: dict[str, Any] = {"user": request.user, "questionnaire": found, "version": version}
    action = post.get("action", "")
    if action == "own":
        language_set(**common, language=post.get("language", ""))
        return
    if action == "file":
        file = request.FILES.get("file")
        if file is None:
            raise QuestionnaireError("Choose a file.")
        translations_set(**common, translations=read_file(file.read(MAX_FILE + 1)))
        return
    texts = all_texts(found)
    columns = list(found.content.get("translations", {}))
    typed = {
        code: {text: post.get(f"{code}-{k}", "") for k, text in enumerate(texts)}
        for code in columns
        if code != post.get("without")
    }
    if post.get("without"):
        typed[post["without"]] = {}
    if post.get("language"):
        typed[post["language"]] = dict.fromkeys(texts, "")
    translations_set(**common, translations=typed)


@require_POST
@staff_required
def open_or_close(request: HttpRequest, uuid: str) -> HttpResponse:
    """Open until a day, move that day, or close now; in the organisation's time zone."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    try:
        if request.POST.get("action") == "close":
            services.questionnaire_close(user=request.user, questionnaire=found)
            toast(request, "The questionnaire is closed.")
        else:
            closes_at = _end_of(request.POST.get("closes_on", ""))
            opens_at = _beginning(request.POST.get("opens_at", ""))
            services.questionnaire_open(
                user=request.user, questionnaire=found, closes_at=closes_at, opens_at=opens_at
            )
            until = timezone.localtime(found.closes_at).strftime("%-d %B, %H:%M")
            toast(request, f"Open until {until}.")
    except QuestionnaireError as problem:
        toast(request, str(problem), error=True)
    return redirect("surveys:questionnaire", found.pk)


def _end_of(text: str) -> datetime:
    try:
        day = parse_date(text)
    except ValueError:
        day = None
    if day is None or day.year > 9000:
        raise QuestionnaireError("Choose the last day.")
    return timezone.make_aware(datetime.combine(day, time(23, 59, 59)))


def _beginning(text: str) -> datetime | None:
    try:
        found = parse_datetime(text) if text else None
    except ValueError:
        found = None
    if text and (found is None or found.year > 9000):
        raise QuestionnaireError("Choose when it opens.")
    return timezone.make_aware(found) if found and timezone.is_naive(found) else found


@require_GET
@staff_required
def preview(request: HttpRequest, uuid: str) -> HttpResponse:
    """Show a question as students see it; nothing is saved."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    questions = questions_of(found.content)
    if not questions:
        toast(request, "There is no question yet.", error=True)
        return redirect("surveys:questionnaire", found.pk)
    number = min(max(1, whole_number(request.GET.get("n", "")) or 1), len(questions))
    language = request.GET.get("lang", "")
    known = {*dict(settings.LANGUAGES), *languages_of(found.content)}
    language = language if language in known else next(iter(dict(settings.LANGUAGES)))
    questions = questions_of(found.content, language)
    nobody = Participant(questionnaire=in_language(found, language))
    with translation.override(language):
        return render_question(request, nobody, questions, number, is_preview=True)


@require_POST
@administrator_required
def delete(request: HttpRequest, uuid: str) -> HttpResponse:
    """Remove a questionnaire with all answers, when its title was typed."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    try:
        services.questionnaire_delete(
            user=request.user, questionnaire=found, typed=request.POST.get("name", "")
        )
    except QuestionnaireError as problem:
        toast(request, str(problem), error=True)
        return redirect("surveys:questionnaire", found.pk)
    toast(request, f"{found.title} was removed with all answers.")
    return redirect("surveys:list")
