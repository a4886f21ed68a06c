"""Terms of an organisation, and the term of a placement."""

from functools import partial

from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required
from webapp.common.form_pages import FormPage
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import attempt, toast
from webapp.housing.models import Term
from webapp.housing.services.stays import place_dates_set
from webapp.housing.services.terms import placement_term_set, term_remove, term_save
from webapp.housing.stays import stay_of_term
from webapp.housing.term_forms import DatesForm, PlacementTermForm, TermForm
from webapp.housing.views.placements import find_placement
from webapp.housing.views.questions import trail_of


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def terms(request: SignedInRequest) -> HttpResponse:
    """List the terms of the organisation, and add one."""
    form = TermForm.typed(request)
    if form.submit(request, partial(term_save, user=request.user, term=None)):
        toast(request, _("The term was added."))
        return redirect("housing:terms")
    rows = owned_by(Term, request.user).annotate(n_placements=Count("placements"))
    return render(request, "housing/terms.html", {"terms": rows, "form": form}, status=form.status)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def term(request: SignedInRequest, term_id: int) -> HttpResponse:
    """Change a term."""
    found = get_owned_or_404(Term, request.user, term_id)
    initial = {name: getattr(found, name) for name in ("name", "code", "starts_on", "ends_on")}
    form = TermForm.typed(request, initial=initial)
    if form.submit(request, partial(term_save, user=request.user, term=found)):
        toast(request, _("The term was changed."))
        return redirect("housing:terms")
    trail = [
        (_("Placements"), reverse("housing:placements")),
        (_("Terms"), reverse("housing:terms")),
    ]
    return FormPage(_("Change %(name)s") % {"name": found.name}, _("Save"), trail).show(
        request, form
    )


@require_POST
@staff_required
def remove(request: SignedInRequest, term_id: int) -> HttpResponse:
    """Remove a term that no placement is for."""
    found = get_owned_or_404(Term, request.user, term_id)
    name = found.name
    attempt(
        request,
        partial(term_remove, user=request.user, term=found),
        _("%(name)s was removed.") % {"name": name},
    )
    return redirect("housing:terms")


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def choose(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Choose the term that a placement is for."""
    found = find_placement(request, uuid)
    form = PlacementTermForm.typed(request, user=request.user, initial={"term": found.term_id})
    if form.submit(request, partial(placement_term_set, user=request.user, placement=found)):
        toast(request, _("The term was saved."))
        return redirect("housing:placement", found.pk)
    if not owned_by(Term, request.user).exists():
        toast(request, _("There is no term yet. Add the first one here."))
        return redirect("housing:terms")
    words = _("Rosters and the pages of students show the first and the last day of the term.")
    page = FormPage(_("Choose the term"), _("Save the term"), trail_of(found), words=words)
    return page.show(request, form)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def dates(request: SignedInRequest, uuid: str, number: int) -> HttpResponse:
    """Set the first and the last day of a student's bed, if they differ from the term."""
    found = find_placement(request, uuid)
    place = get_object_or_404(found.places.present().select_related("room"), number=number)
    initial = {
        "arrives_on": place.arrives_on,
        "leaves_on": place.leaves_on,
        "version": found.version,
    }
    form = DatesForm.typed(request, initial=initial)
    act = partial(place_dates_set, user=request.user, placement=found, number=number)
    if form.submit(request, act):
        toast(request, _("The dates of %(place)s were changed.") % {"place": place.label})
        room = f"?room={place.room_id}" if place.room_id else ""
        return redirect(reverse("housing:placement", args=[found.pk]) + room)
    usual = stay_of_term(found.term).words
    facts = {"days": usual, "student": place.label, "placement": found.name, "room": place.room}
    sentences = [
        _("The term goes from %(days)s.") if usual else _("This placement has no term."),
        _(
            "Leave a day blank if %(student)s arrives or leaves with the term. On the other days "
            "the bed is free for somebody else. The bed is taken on the first and the last day, "
            "too."
        ),
    ]
    if found.is_published:
        sentences.append(
            _("%(placement)s is published: the page of %(student)s shows these days at once.")
        )
    words = " ".join(sentence % facts for sentence in sentences)
    title = _("Dates of %(student)s in %(room)s") if place.room else _("Dates of %(student)s")
    page = FormPage(
        title % facts,
        _("Save the dates"),
        trail_of(found),
        words,
    )
    return page.show(request, form)
