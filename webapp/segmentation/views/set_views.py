"""Views for the display of a set's deep images: percentiles, channels, page, size of a pixel."""

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from engine.datasets.picture_view import BRIGHTEST
from webapp.accounts.requests import SignedInRequest
from webapp.common import formats
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.segmentation.forms import ViewForm
from webapp.segmentation.models import ImageSet
from webapp.segmentation.services.views import PERCENTILES, view_change


def view_words(image_set: ImageSet) -> str:
    """Return "shown from the 0.1 to the 99.9 percentile, 212 to 3,205", or ""."""
    view = image_set.view
    if not view:
        return ""
    low, high = view.get("percentiles", PERCENTILES)
    words = _("shown from percentile %(low)s to %(high)s") % {
        "low": f"{low:g}",
        "high": f"{high:g}",
    }
    if len(view["channels"]) == 1:
        first = view["channels"][0]
        words += ": " + formats.span(f"{first['low']:,.5g}", f"{first['high']:,.5g}")
    else:
        shown = sum(channel["colour"] != "off" for channel in view["channels"])
        words += ", " + _("%(shown)s of %(channels)s channels") % {
            "shown": shown,
            "channels": len(view["channels"]),
        }
    page = {0: "", BRIGHTEST: ", " + _("brightest of all pages")}.get(view["page"])
    return words + (
        ", " + _("page %(page)s") % {"page": view["page"] + 1} if page is None else page
    )


def scale_words(image_set: ImageSet) -> str:
    """Return the size of a pixel that a person set in words, or ""."""
    if not image_set.pixel_size:
        return ""
    size = f"{image_set.pixel_size:.4g} µm"
    if image_set.pixel_size_for_all:
        return _("A pixel of every picture is %(size)s.") % {"size": size}
    return _("A pixel is %(size)s where a file states no size.") % {"size": size}


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def image_set_view(request: SignedInRequest, pk: str) -> HttpResponse:
    """Set the display of the images of a set and the size of a pixel."""
    image_set = get_owned_or_404(ImageSet, request.user, pk)
    low, high = image_set.view.get("percentiles", PERCENTILES)
    initial = {
        "low": low,
        "high": high,
        "page": image_set.view.get("page", 0),
        "pixel_size": image_set.pixel_size,
        "pixel_size_for_all": image_set.pixel_size_for_all,
    }
    form = ViewForm.typed(request, image_set=image_set, initial=initial)

    def act(**fields: object) -> None:
        try:
            view_change(user=request.user, image_set=image_set, **form.chosen())
        except Refusal as error:
            raise Refusal(_("%(error)s Nothing was changed.") % {"error": error}) from error

    if form.submit(request, act):
        sentence = _("The display of %(image_set)s was changed.")
        toast(request, sentence % {"image_set": image_set.name})
        return redirect(image_set)
    context = {"form": form, "image_set": image_set}
    return render(request, "segmentation/image_set_view.html", context, status=form.status)
