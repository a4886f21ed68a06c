"""Templates of letters: listing, writing, changing, removing."""

from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required
from webapp.common.listing import Tally, light, list_page
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import attempt, toast
from webapp.housing.models import Placement
from webapp.letters.errors import LetterError
from webapp.letters.fields import FIELDS
from webapp.letters.models import Contact, Letter, LetterTemplate
from webapp.letters.services.templates import (
    FIRST_SUBJECT,
    FIRST_TEXT,
    template_remove,
    template_save,
)

WRITTEN = ("name", "subject", "text", "reply_to", "contact", "consent_column")


@require_safe
@staff_required
def templates(request: SignedInRequest) -> HttpResponse:
    """List the organisation's letters, by name."""
    sent = Tally(Letter.objects.filter(state=Letter.SENT), "template", {"n_sent": Count("pk")})
    listing = list_page(owned_by(LetterTemplate, request.user), request.GET, sent)
    return render(request, "letters/templates.html", {"listing": listing})


@require_http_methods(["GET", "POST"])
@staff_required
def template_new(request: SignedInRequest) -> HttpResponse:
    """Write a letter, starting from a text with everything that a letter needs."""
    first = {"name": "Room assignment", "subject": FIRST_SUBJECT, "text": FIRST_TEXT}
    return _write(request, None, first)


@require_http_methods(["GET", "POST"])
@staff_required
def template(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Change a letter; sent ones stay as they were."""
    found = get_owned_or_404(LetterTemplate, request.user, uuid)
    return _write(request, found, {name: getattr(found, name) for name in WRITTEN})


def _write(
    request: SignedInRequest, found: LetterTemplate | None, values: dict[str, str]
) -> HttpResponse:
    error = ""
    if request.method == "POST":
        values = {name: request.POST.get(name, "") for name in WRITTEN}
        try:
            saved = template_save(user=request.user, template=found, **values)
            toast(request, f"{saved.name} is kept. Look at it with real students next.")
            return redirect("letters:template", saved.pk)
        except LetterError as problem:
            error = str(problem)
    placements = light(owned_by(Placement, request.user)).filter(revision__gt=0)
    context = {
        "template": found,
        "values": values,
        "fields": FIELDS,
        "contacts": Contact.choices,
        "placements": placements.order_by("-updated_at")[:8],
        "error": error,
    }
    return render(request, "letters/template.html", context, status=422 if error else 200)


@require_POST
@staff_required
def template_delete(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Remove a letter that was not sent to anybody, if its name was typed."""
    found, name = get_owned_or_404(LetterTemplate, request.user, uuid), request.POST.get("name", "")
    is_removed = attempt(
        request,
        lambda: template_remove(user=request.user, template=found, typed_name=name),
        f"{found.name} was removed.",
    )
    return redirect("letters:templates") if is_removed else redirect("letters:template", uuid)
