"""How the deep pictures of a set are shown: percentiles, channels, page, size of a pixel."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from engine import BRIGHTEST, COLOURS
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.segmentation.models import ImageFile, ImageSet
from webapp.segmentation.services.views import PERCENTILES, view_change


class ViewForm(forms.Form):
    """What a person chooses; channels are those of the set's view."""

    low = forms.FloatField(
        label="Black at percentile",
        min_value=0,
        max_value=100,
        help_text="This share of the values of all pictures of the set lies below black.",
    )
    high = forms.FloatField(label="Full at percentile", min_value=0, max_value=100)
    page = forms.ChoiceField(label="Page of a stack")
    pixel_size = forms.FloatField(
        label="Size of a pixel (µm)",
        required=False,
        min_value=1e-6,
        help_text="Blank: areas and lengths are given in pixels.",
    )

    def __init__(self, *args: Any, image_set: ImageSet, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        pages = most_pages(image_set)
        self.fields["page"].choices = [(0, "The first")] + [
            (number, f"Page {number + 1}") for number in range(1, min(pages, 500))
        ]
        if pages > 1:
            brightest = (BRIGHTEST, "Of each pixel the brightest of all pages")
            self.fields["page"].choices = [*self.fields["page"].choices, brightest]
        else:
            del self.fields["page"]
        colours = [(name, name.capitalize()) for name in COLOURS]
        channels = image_set.view.get("channels", [])
        if not channels:
            del self.fields["low"], self.fields["high"]
        for number, channel in enumerate(channels):
            self.fields[f"channel_{number}"] = forms.ChoiceField(
                label=f"Channel {number + 1}" if len(channels) > 1 else "Colour",
                choices=colours,
                initial=channel["colour"],
                help_text=f"Shown from {channel['low']:,.6g} to {channel['high']:,.6g}.",
            )

    def clean(self) -> dict[str, Any]:
        """Percentiles ascend."""
        data = super().clean() or {}
        low, high = data.get("low"), data.get("high")
        if low is not None and high is not None and low >= high:
            self.add_error("high", "This must be above the percentile of black.")
        return data

    def chosen(self) -> dict[str, Any]:
        """Return the arguments of ``view_change``."""
        data = self.cleaned_data
        n_channels = sum(name.startswith("channel_") for name in data)
        return {
            "percentiles": (data.get("low", PERCENTILES[0]), data.get("high", PERCENTILES[1])),
            "colours": [data[f"channel_{k}"] for k in range(n_channels)],
            "page": int(data.get("page") or 0),
            "pixel_size": data.get("pixel_size"),
        }


def most_pages(image_set: ImageSet) -> int:
    """Return the most pages that a file of the set has."""
    files = image_set.files.filter(role=ImageFile.Role.IMAGE, facts__has_key="pages")
    return max(files.values_list("facts__pages", flat=True), default=1)


def view_words(image_set: ImageSet) -> str:
    """Return "shown from the 0.1 to the 99.9 percentile, 212 to 3,205", or nothing."""
    view = image_set.view
    if not view:
        return ""
    low, high = view.get("percentiles", PERCENTILES)
    words = f"shown from percentile {low:g} to {high:g}"
    if len(view["channels"]) == 1:
        first = view["channels"][0]
        words += f": {first['low']:,.5g} to {first['high']:,.5g}"
    else:
        shown = sum(channel["colour"] != "off" for channel in view["channels"])
        words += f", {shown} of {len(view['channels'])} channels"
    page = {0: "", BRIGHTEST: ", brightest of all pages"}.get(view["page"])
    return words + (f", page {view['page'] + 1}" if page is None else page)


@require_http_methods(["GET", "POST"])
@staff_required
def image_set_view(request: HttpRequest, pk: str) -> HttpResponse:
    """Choose how the pictures of a set are shown and how large a pixel is."""
    image_set = get_owned_or_404(ImageSet, request.user, pk)
    low, high = image_set.view.get("percentiles", PERCENTILES)
    initial = {
        "low": low,
        "high": high,
        "page": image_set.view.get("page", 0),
        "pixel_size": image_set.pixel_size,
    }
    form = ViewForm(request.POST or None, image_set=image_set, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            view_change(user=request.user, image_set=image_set, **form.chosen())
        except Refusal as error:
            form.add_error(None, f"{error} Nothing was changed.")
        else:
            toast(request, f"The display of {image_set.name} was changed.")
            return redirect(image_set)
    context = {"form": form, "image_set": image_set}
    status = 422 if form.errors else 200
    return render(request, "segmentation/image_set_view.html", context, status=status)
