"""Forms of image sets, of their views, of models and of predictions."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from engine import network_available
from engine.datasets.picture_view import BRIGHTEST, COLOURS
from webapp.common import formats
from webapp.common.forms import BackForm, TypedForm, field_of
from webapp.segmentation.models import ImageSet, PredictionBatch, Segmenter
from webapp.segmentation.object_options import ObjectOptions
from webapp.segmentation.selectors.image_sets import (
    image_counts,
    most_pages,
    sets_with_images,
    sets_with_maps,
    sets_with_masks,
    sets_with_numbers,
)
from webapp.segmentation.selectors.segmenters import ready_segmenters
from webapp.segmentation.services.probability_maps import maps_beside
from webapp.segmentation.services.segmenters import LearningChoices
from webapp.segmentation.services.views import PERCENTILES

RESTRAINTS = [
    ("0.1", gettext_lazy("Little: follows the masks closely; for many images")),
    ("1", gettext_lazy("Usual: a good start for most sets")),
    ("10", gettext_lazy("Strong: for few images or doubtful masks")),
]
TIMES = [
    ("60", gettext_lazy("1 minute")),
    ("300", gettext_lazy("5 minutes")),
    ("1800", gettext_lazy("30 minutes")),
    ("7200", gettext_lazy("2 hours")),
]
DETAILS = [
    (
        "0",
        gettext_lazy(
            "Automatic: from 100 pixels a side to full size, linear weights up to 1,000; slower"
        ),
    ),
    ("100", gettext_lazy("Coarse: 100 pixels a side, fastest")),
    ("200", gettext_lazy("Usual: 200 pixels a side")),
    ("300", gettext_lazy("Fine: 300 pixels a side, about twice as slow")),
    ("600", gettext_lazy("Very fine: 600 pixels a side, for small things; many times as slow")),
]

EDGE_METHODS = (Segmenter.Solver.AUTO, Segmenter.Solver.NETWORK)
"""Methods by which edges of objects are learned."""

METHODS = [one for one in Segmenter.Solver.choices if one[0] != Segmenter.Solver.PAINTED]


class FileRemovalForm(BackForm):
    """Removal of a file; an image takes its mask along if the page named that mask."""

    with_mask = forms.CharField(required=False, max_length=40)


class RoleForm(BackForm):
    """Another role of a file: image or mask."""

    role = forms.CharField(required=False, max_length=40)


class PairForm(BackForm):
    """The image of a mask; blank for no image."""

    image = forms.CharField(required=False, max_length=40)


class UploadForm(TypedForm):
    """The fields that a page sends beside the files that it uploads."""

    name = forms.CharField(required=False, max_length=1_000, strip=False)
    encoding = forms.CharField(required=False, max_length=40)
    beside = forms.CharField(required=False, max_length=1_000, strip=False)
    bytes = forms.CharField(required=False, max_length=40)


class ImageSetForm(TypedForm):
    """Form of the name of a set and of the object that its masks mark."""

    name = forms.CharField(
        max_length=120,
        help_text=gettext_lazy(
            "Such as “Leaf scans, greenhouse 2”. Only your organisation sees it."
        ),
        label=gettext_lazy("Name"),
    )
    foreground = forms.CharField(
        label=gettext_lazy("What the masks mark"),
        max_length=40,
        initial="object",
        help_text=gettext_lazy(
            "One word in the singular, such as “leaf”. Pages then say “probability of leaf”."
        ),
    )


class ViewForm(TypedForm):
    """Form of a set's view; its channels are those of the current view."""

    low = forms.FloatField(
        label=gettext_lazy("Black at percentile"),
        min_value=0,
        max_value=100,
        help_text=gettext_lazy(
            "This share of the values of all pictures of the set lies below black."
        ),
    )
    high = forms.FloatField(label=gettext_lazy("Full at percentile"), min_value=0, max_value=100)
    page = forms.ChoiceField(label=gettext_lazy("Page of a stack"))
    pixel_size = forms.FloatField(
        label=gettext_lazy("Size of a pixel (µm)"),
        required=False,
        min_value=1e-6,
        help_text=gettext_lazy(
            "For pictures whose files state no size. Blank: their areas are in pixels."
        ),
    )
    pixel_size_for_all = forms.BooleanField(
        label=gettext_lazy("Use this size for all pictures"),
        required=False,
        help_text=gettext_lazy(
            "Also for pictures whose files state another size, where the files are wrong."
        ),
    )

    def __init__(self, *args: Any, image_set: ImageSet, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        pages = most_pages(image_set)
        page = field_of(self, "page", forms.ChoiceField)
        page.choices = [(0, _("The first"))] + [
            (number, _("Page %(number)s") % {"number": number + 1})
            for number in range(1, min(pages, 500))
        ]
        if pages > 1:
            brightest = (BRIGHTEST, _("Of each pixel the brightest of all pages"))
            page.choices = [*page.choices, brightest]
        else:
            del self.fields["page"]
        colours = [(name, name.capitalize()) for name in COLOURS]
        channels = image_set.view.get("channels", [])
        if not channels:
            del self.fields["low"], self.fields["high"]
        for number, channel in enumerate(channels):
            self.fields[f"channel_{number}"] = forms.ChoiceField(
                label=_("Channel %(number)s") % {"number": number + 1}
                if len(channels) > 1
                else _("Colour"),
                choices=colours,
                initial=channel["colour"],
                help_text=_("Shown from %(low)s to %(high)s.")
                % {"low": f"{channel['low']:,.6g}", "high": f"{channel['high']:,.6g}"},
            )

    def clean(self) -> dict[str, Any]:
        """Refuse percentiles that do not ascend."""
        data = super().clean() or {}
        low, high = data.get("low"), data.get("high")
        if low is not None and high is not None and low >= high:
            self.add_error("high", _("This must be above the percentile of black."))
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
            "pixel_size_for_all": data.get("pixel_size_for_all", False),
        }


class LearnForm(TypedForm):
    """Form of a new model: the image sets and settings; every default suits a first try."""

    refused_field = "image_sets"
    name = forms.CharField(max_length=120, label=gettext_lazy("Name"))
    image_sets = forms.ModelMultipleChoiceField(
        ImageSet.objects.none(),
        label=gettext_lazy("Learn from"),
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Only images with a mask are used."),
        error_messages={"required": gettext_lazy("Choose at least one set.")},
    )
    restraint = forms.ChoiceField(
        label=gettext_lazy("Restraint (lambda)"),
        choices=RESTRAINTS,
        initial="1",
        widget=forms.RadioSelect,
    )
    max_side = forms.ChoiceField(
        label=gettext_lazy("Detail"),
        choices=DETAILS,
        initial="200",
        help_text=gettext_lazy(
            "Images are shrunk to this for learning; masks come out at full size."
        ),
    )
    max_seconds = forms.ChoiceField(
        label=gettext_lazy("Stop at the latest after"),
        choices=TIMES,
        initial="300",
        help_text=gettext_lazy(
            "Reading and checking included. With little time, the model learns from fewer "
            "images and trees."
        ),
    )
    holdout_percent = forms.IntegerField(
        label=gettext_lazy("Hold out for checking (%)"),
        min_value=0,
        max_value=50,
        initial=20,
        help_text=gettext_lazy(
            "These images are not learned from: the error on them is the honest one."
        ),
    )
    solver = forms.ChoiceField(
        label=gettext_lazy("Method"),
        choices=METHODS,
        initial="auto",
        help_text=gettext_lazy(
            "A network takes most of the time that it is given: half an hour for 200 images "
            "without a graphics card. Predicting needs neither."
        ),
    )
    edges = forms.BooleanField(
        label=gettext_lazy("Learn the edges of objects that touch"),
        required=False,
        help_text=gettext_lazy(
            "Counts of touching objects become better. In a mask that does not number its objects, "
            "pixels that touch are one object. It learns at full size and holds out no image: "
            "each is checked by trees that did not learn from it."
        ),
    )

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        missing = network_available()
        if missing is not None:
            solver = field_of(self, "solver", forms.ChoiceField)
            solver.choices = [one for one in METHODS if one[0] != Segmenter.Solver.NETWORK]
            solver.help_text = missing
        field = field_of(self, "image_sets", forms.ModelMultipleChoiceField)
        field.queryset = sets_with_masks(user)
        n_masked = image_counts(user, masked=True)
        numbered = set(sets_with_numbers(user).values_list("pk", flat=True))
        with_maps = set(sets_with_maps(user))
        field.label_from_instance = lambda obj: (  # type: ignore[method-assign]  # this form's
            ngettext(
                "%(set)s: %(count)s image with masks%(numbers)s%(maps)s",
                "%(set)s: %(count)s images with masks%(numbers)s%(maps)s",
                count := n_masked[obj.pk],
            )
            % {
                "set": obj.name,
                "count": f"{count:,}",
                "numbers": ", " + _("whose objects have numbers") if obj.pk in numbered else "",
                "maps": maps_in_words(obj) if obj.pk in with_maps else "",
            }
        )
        if with_maps:
            field.help_text = _(
                "Only images with a mask are used. Of several sets maps are learned from "
                "where every image of all of them has one."
            )

    def clean(self) -> dict[str, Any]:
        """Refuse edges with a method of masks only."""
        data = super().clean() or {}
        if data.get("edges") and data.get("solver") not in EDGE_METHODS:
            self.add_error(
                "solver",
                _("Edges are learned by “Smoothed trees” or by a network: choose one of these."),
            )
        return data

    @property
    def wants_edges(self) -> bool:
        """True if edges of objects are to be learned."""
        return bool(self.cleaned_data.get("edges"))

    def choices(self) -> LearningChoices:
        """Return the chosen settings as numbers."""
        data = self.cleaned_data
        return LearningChoices(
            restraint=float(data["restraint"]),
            solver=data["solver"],
            max_side=int(data["max_side"]),
            max_seconds=int(data["max_seconds"]),
            holdout_percent=data["holdout_percent"],
        )


def maps_in_words(image_set: ImageSet) -> str:
    """Return a sentence on whether a model learns from the set's probability maps, and why not."""
    maps = maps_beside(image_set)
    if maps.n_planes:
        planes = formats.counted(maps.n_planes, "plane")
        return "; " + _("learns from their probability maps, too (%(planes)s)") % {"planes": planes}
    if maps.n_with == maps.n_images:
        return "; " + _("probability maps with different numbers of planes are not learned from")
    images = formats.counted(maps.n_images, "image")
    return "; " + ngettext(
        "%(count)s of %(images)s has a probability map: maps are learned from where every image "
        "has one",
        "%(count)s of %(images)s have a probability map: maps are learned from where every image "
        "has one",
        maps.n_with,
    ) % {"count": maps.n_with, "images": images}


class PaintedForm(TypedForm):
    """Form on the painting page for learning a model from strokes."""

    max_seconds = forms.ChoiceField(
        label=gettext_lazy("Learn for at most"),
        choices=TIMES,
        initial="300",
        required=False,
        widget=forms.Select(attrs={"form": "learn-painted"}),
        help_text=gettext_lazy(
            "For the model that is kept; answers while you paint take no longer."
        ),
    )
    network = forms.BooleanField(
        label=gettext_lazy("Learn a network too"),
        required=False,
        widget=forms.CheckboxInput(attrs={"form": "learn-painted"}),
        help_text=gettext_lazy(
            "Most accurate where much is painted or imported, but slow without a graphics "
            "card: give it half an hour."
        ),
    )
    predict = forms.BooleanField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if network_available() is not None:
            del self.fields["network"]

    def clean_max_seconds(self) -> int:
        """Return the seconds; if they are missing, those that the page chooses first."""
        return int(self.cleaned_data["max_seconds"] or self.fields["max_seconds"].initial)


class ImportForm(TypedForm):
    """Form of a model file with the digest that its sender stated."""

    refused_field = "file"
    file = forms.FileField(
        label=gettext_lazy("Model file (NPZ)"),
        help_text=gettext_lazy(
            "As “Model file” on a model’s page gives it, or the command line writes it."
        ),
    )
    name = forms.CharField(max_length=120, label=gettext_lazy("Name"))
    foreground = forms.CharField(
        label=gettext_lazy("What it marks"),
        max_length=40,
        initial="object",
        help_text=gettext_lazy(
            "One word in the singular. Models of several classes bring their own names."
        ),
    )
    digest = forms.RegexField(
        r"^\s*[0-9a-fA-F]{64}\s*$",
        label=gettext_lazy("SHA-256 (optional)"),
        required=False,
        help_text=gettext_lazy(
            "If the sender gave you one: the file is taken only if it is the very same."
        ),
        error_messages={"invalid": gettext_lazy("A SHA-256 has 64 digits, 0 to 9 and a to f.")},
    )


class ObjectsForm(TypedForm):
    """Form of what counts as an object of a prediction."""

    splits = forms.FloatField(min_value=-1.0, max_value=1.0)
    min_pixels = forms.IntegerField(
        label=gettext_lazy("Smallest object"), min_value=1, max_value=1_000_000
    )
    drop_border = forms.BooleanField(required=False)
    background = forms.TypedMultipleChoiceField(coerce=int, required=False)
    edge = forms.TypedChoiceField(
        coerce=int, empty_value=None, required=False, label=gettext_lazy("Edge")
    )

    def __init__(self, *args: Any, classes: list[dict[str, Any]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(one["value"], one["name"]) for one in classes]
        field_of(self, "background", forms.TypedMultipleChoiceField).choices = choices
        field_of(self, "edge", forms.TypedChoiceField).choices = [("", _("None")), *choices]

    def options(self, typical_area: float | None) -> ObjectOptions:
        """Return the options of a valid form."""
        given = self.cleaned_data
        return ObjectOptions(
            splits=given["splits"],
            background=tuple(given["background"]),
            min_pixels=given["min_pixels"],
            drop_border=given["drop_border"],
            typical_area=typical_area,
            edge=given["edge"],
        )


class PredictForm(TypedForm):
    """Form of a new prediction: the model and the image set."""

    image_set = forms.ModelChoiceField(
        ImageSet.objects.none(),
        label=gettext_lazy("Images"),
        empty_label=gettext_lazy("Choose a set"),
    )
    segmenter = forms.ModelChoiceField(
        Segmenter.objects.none(),
        label=gettext_lazy("Model"),
        empty_label=gettext_lazy("Choose a model"),
    )
    readout = forms.ChoiceField(
        label=gettext_lazy("Masks"),
        choices=PredictionBatch.Readout,
        initial=PredictionBatch.Readout.MARGINAL,
        required=False,
        help_text=gettext_lazy(
            "The likelier sides have fewer wrong pixels; the best labelling has smoother "
            "outlines where the model is in doubt."
        ),
    )

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        sets = field_of(self, "image_set", forms.ModelChoiceField)
        sets.queryset = sets_with_images(user)
        n_images = image_counts(user)
        sets.label_from_instance = lambda obj: (  # type: ignore[method-assign]  # this form's
            f"{obj.name} ({formats.counted(n_images[obj.pk], 'image')})"
        )
        models = field_of(self, "segmenter", forms.ModelChoiceField)
        models.queryset = ready_segmenters(user)
        models.label_from_instance = lambda obj: (  # type: ignore[method-assign]  # this form's
            _("%(obj)s (finds “%(foreground)s”)") % {"obj": obj.name, "foreground": obj.foreground}
        )

    def clean_readout(self) -> str:
        """Return the chosen readout; if it is missing, the likelier side of each pixel."""
        return self.cleaned_data["readout"] or PredictionBatch.Readout.MARGINAL
