"""Views of image sets: list, new, one set; removal of sets and files, roles and pairs."""

from collections.abc import Callable

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from engine.datasets.annotations.archive import MAX_ENTRY_BYTES, MAX_TOTAL_BYTES
from webapp.accounts.requests import SignedInRequest
from webapp.common.acts import filters_of
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.form_pages import if_named, remove_page
from webapp.common.forms import BackForm
from webapp.common.kept_forms import keeps_typed
from webapp.common.listing import page_at
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.segmentation.forms import FileRemovalForm, ImageSetForm, PairForm, RoleForm
from webapp.segmentation.models import ImageFile, ImageSet
from webapp.segmentation.selectors.image_sets import (
    file_tabs,
    image_file_of,
    image_set_listing,
    image_set_of,
    jobs_that_need,
    matching_files,
)
from webapp.segmentation.services.image_sets import (
    image_file_remove,
    image_file_set_role,
    image_set_create,
    image_set_purge,
    mask_pair,
)
from webapp.segmentation.views.set_views import scale_words, view_words

PAGE_SIZE = 36


@require_safe
@viewer_required
def image_set_list(request: SignedInRequest) -> HttpResponse:
    """List the image sets of the organisation."""
    listing = image_set_listing(request.user, request.GET)
    return render(request, "segmentation/image_set_list.html", {"listing": listing})


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def image_set_new(request: SignedInRequest) -> HttpResponse:
    """Create an empty image set and redirect to its page for uploading."""
    form = ImageSetForm.typed(request)
    made: list[ImageSet] = []

    def act(**fields: str) -> None:
        made.append(image_set_create(user=request.user, **fields))

    if form.submit(request, act):
        return redirect(made[0])
    return render(request, "segmentation/image_set_new.html", {"form": form}, status=form.status)


@require_safe
@viewer_required
def image_set_page(request: SignedInRequest, pk: str) -> HttpResponse:
    """Show one image set: drop zone, files with their masks, problems."""
    image_set = image_set_of(request.user, pk)
    choice = request.GET.get("show", "all")
    query = request.GET.get("q", "").strip()
    page = page_at(matching_files(image_set, choice, query), request.GET.get("page"), PAGE_SIZE)
    unpaired = choice == "unpaired"
    context = {
        "image_set": image_set,
        "tabs": file_tabs(image_set, query),
        "choice": choice,
        "part_of_name": query,
        "page": page,
        "free_images": _images_without_mask(image_set) if unpaired else [],
        "view_words": view_words(image_set),
        "size_words": scale_words(image_set),
        "needed_by": jobs_that_need(image_set) if request.user.is_staff_member else [],
        "max_megabytes": MAX_ENTRY_BYTES // 1024**2,
        "max_gigabytes": MAX_TOTAL_BYTES // 1024**3,
    }
    return render(request, "segmentation/image_set.html", context)


def _images_without_mask(image_set: ImageSet) -> list[ImageFile]:
    return list(image_set.files.images().filter(mask__isnull=True)[:1000])


@require_POST
@staff_required
def image_set_purge_view(request: SignedInRequest, pk: str) -> HttpResponse:
    """Delete a set with its files and predictions if its name was typed."""
    image_set = get_owned_or_404(ImageSet, request.user, pk)
    return remove_page(
        request,
        _("Remove this set"),
        if_named(image_set.name, lambda: image_set_purge(user=request.user, image_set=image_set)),
        [
            (_("Image sets"), reverse("segmentation:image-sets")),
            (image_set.name, image_set.get_absolute_url()),
        ],
        words=_("This removes all images, masks and predictions of this set."),
        sent_as="confirm",
    )


@require_http_methods(["GET", "POST"])
@staff_required
def image_file_remove_view(request: SignedInRequest, pk: str, file_pk: str) -> HttpResponse:
    """Show what is removed together with a file; remove it on POST."""
    file = image_file_of(request.user, pk, file_pk)
    if request.method == "POST":
        form = FileRemovalForm.typed(request)

        def act(*, with_mask: str, back: str) -> None:
            image_file_remove(user=request.user, file=file, with_mask=with_mask)

        if form.submit(request, act):
            toast(request, _("%(file)s was removed from the set.") % {"file": file.name})
        else:
            words = _("%(error)s Nothing was removed.") % {"error": form.first_error}
            toast(request, words, error=True)
        return _back(form, file)
    context = {
        "file": file,
        "title": _("Remove this %(role)s") % {"role": file.role},
        "is_predicted": file.predictions.exists(),
    }
    name = "_file_removal_dialog" if request.htmx else "file_removal"
    return render(request, f"segmentation/{name}.html", context)


@require_POST
@staff_required
def image_file_action(request: SignedInRequest, pk: str, file_pk: str, action: str) -> HttpResponse:
    """Change a file's role or pair a mask; redirect to the page of the button."""
    file = image_file_of(request.user, pk, file_pk)
    kind, act = _ACTIONS[action]
    form = kind.typed(request)

    def perform(*, back: str, **fields: str) -> None:
        toast(request, act(request, file, **fields))

    if not form.submit(request, perform):
        words = _("%(error)s Nothing was changed.") % {"error": form.first_error}
        toast(request, words, error=True)
    return _back(form, file)


def _back(form: BackForm, file: ImageFile) -> HttpResponse:
    """Redirect to the tab, search and page of the set that showed the form."""
    sent = filters_of(form.back_to)
    shown = urlencode({name: sent[name] for name in ("show", "q", "page") if sent.get(name)})
    return redirect(f"{file.image_set.get_absolute_url()}?{shown}")


def _set_role(request: SignedInRequest, file: ImageFile, *, role: str) -> str:
    image_file_set_role(user=request.user, file=file, role=role)
    if file.role == "mask":
        sentence = _("%(file)s is now used as a mask.")
    else:
        sentence = _("%(file)s is now used as an image.")
    return sentence % {"file": file.name}


def _pair(request: SignedInRequest, file: ImageFile, *, image: str) -> str:
    chosen = image_file_of(request.user, file.image_set_id, image) if image else None
    mask_pair(user=request.user, mask=file, image=chosen)
    return (
        _("%(file)s is the mask of %(image)s.") % {"file": file.name, "image": chosen.name}
        if chosen
        else _("%(file)s was unpaired.") % {"file": file.name}
    )


_ACTIONS: dict[str, tuple[type[BackForm], Callable[..., str]]] = {
    "role": (RoleForm, _set_role),
    "pair": (PairForm, _pair),
}
