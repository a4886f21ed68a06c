"""Charts of segmentation: the falling error on held-out images, and reliability."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from webapp.charts import Chart, Series, line_chart, reliability_chart
from webapp.segmentation.models import HeldOutPoint
from webapp.segmentation.uncertainty import ReliabilityBin


def held_out_chart(points: Sequence[HeldOutPoint]) -> Chart:
    """Return the chart of the share of wrong held-out pixels against seconds of learning."""
    errors = [100 * point.error for point in points]
    return line_chart(
        [Series(_("Wrong pixels on held-out images"), [p.seconds for p in points], errors)],
        title=_("Error on held-out images"),
        x_label=_("Time learning (seconds)"),
        y_label=_("Wrong pixels (%)"),
        y_range=(0.0, max(errors) * 1.05 or 1.0),
        description=_("From %(first)s %% to %(last)s %%.")
        % {"first": f"{errors[0]:.1f}", "last": f"{errors[-1]:.1f}"},
    )


def reliability_figure(bins: Sequence[ReliabilityBin]) -> Chart:
    """Return the chart of the observed share of foreground against predicted probability."""
    return reliability_chart(
        [(b.predicted, b.observed, b.low, b.high, b.n_pixels) for b in bins],
        title=_("Can its probabilities be believed?"),
        x_label=_("Predicted probability (%)"),
        y_label=_("Share of pixels that are (%)"),
        log=False,
    )
