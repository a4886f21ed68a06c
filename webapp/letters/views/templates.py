"""Templates of letters: listing, writing, changing, removing."""

from functools import partial

from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required
from webapp.common.form_pages import remove_page
from webapp.common.kept_forms import keeps_typed
from webapp.common.listing import Tally, light, list_page
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import toast
from webapp.housing.models import Placement
from webapp.letters.fields import FIELDS
from webapp.letters.forms import TemplateForm
from webapp.letters.models import Letter, LetterTemplate
from webapp.letters.services.templates import (
    FIRST_SUBJECT,
    FIRST_TEXT,
    template_remove,
    template_save,
)
from webapp.translation.lazy import gettext_lazy

REMOVAL = gettext_lazy("Only a letter that nobody got can go.")


@require_safe
@staff_required
def templates(request: SignedInRequest) -> HttpResponse:
    """List the organisation's letters, by name."""
    sent = Tally(Letter.objects.filter(state=Letter.SENT), "template", {"n_sent": Count("pk")})
    listing = list_page(owned_by(LetterTemplate, request.user), request.GET, sent)
    return render(request, "letters/templates.html", {"listing": listing})


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def template_new(request: SignedInRequest) -> HttpResponse:
    """Write a letter, starting from a text with everything that a letter needs."""
    first = {"name": _("Room assignment"), "subject": FIRST_SUBJECT, "text": FIRST_TEXT}
    return _write(request, None, TemplateForm.typed(request, initial=first))


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def template(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Change a letter; sent ones stay as they were."""
    found = get_owned_or_404(LetterTemplate, request.user, uuid)
    values = {name: getattr(found, name) for name in TemplateForm.base_fields}
    return _write(request, found, TemplateForm.typed(request, initial=values))


def _write(
    request: SignedInRequest, found: LetterTemplate | None, form: TemplateForm
) -> HttpResponse:
    name = found.name if found else ""
    saved: list[LetterTemplate] = []
    save = partial(template_save, user=request.user, template=found)
    if form.submit(request, lambda **values: saved.append(save(**values))):
        toast(
            request,
            _("%(saved)s is kept. Look at it with real students next.") % {"saved": saved[0].name},
        )
        return redirect("letters:template", saved[0].pk)
    placements = light(owned_by(Placement, request.user)).filter(revision__gt=0)
    context = {
        "template": found,
        "name": name,
        "form": form,
        "fields": FIELDS,
        "removal": REMOVAL,
        "placements": placements.order_by("-updated_at")[:8],
    }
    return render(request, "letters/template.html", context, status=form.status)


@require_http_methods(["GET", "POST"])
@staff_required
def template_delete(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Remove a letter that was not sent to anybody, if its name was typed."""
    found = get_owned_or_404(LetterTemplate, request.user, uuid)
    own = reverse("letters:template", args=[found.pk])
    trail = [(_("Letters"), reverse("letters:templates")), (found.name, own)]
    act = partial(template_remove, user=request.user, template=found)
    return remove_page(request, _("Remove the letter"), act, trail, words=REMOVAL)
