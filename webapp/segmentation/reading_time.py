"""Estimate of the time that learning will take, from the first images read."""

import time

from django.utils.translation import gettext as _

from engine import Progress
from engine.learning.segmentation.clock import expected_seconds
from webapp.jobs.context import JobContext
from webapp.segmentation.models import Segmenter

USUAL_SECONDS = 0.05  # seconds to read an image, until some are read
USUAL_SHAPE = 0.75  # height over width of a model


class ReadingTime:
    """Counter of images read, which reports the remaining time for reading and learning."""

    def __init__(self, context: JobContext, segmenter: Segmenter) -> None:
        self._context, self._segmenter = context, segmenter
        self._done, self._started = 0, time.monotonic()

    def next(self, total: int) -> None:
        """Report that one more of ``total`` images is read; a second reading restarts at 0."""
        if self._done == total:
            self._done, self._started = 0, time.monotonic()
        spent = time.monotonic() - self._started
        each = spent / self._done if self._done else USUAL_SECONDS
        left = each * (total - self._done) + self._learning(total)
        self._done += 1
        sentence = _("Reading image %(number)s of %(total)s") % {
            "number": self._done,
            "total": total,
        }
        self._context.on_progress(
            Progress(sentence, seconds=self._context.seconds, seconds_left=left)
        )

    def _learning(self, total: int) -> float:
        """Return the expected seconds of learning; with a time limit, the time left of it."""
        segmenter = self._segmenter
        limit = max(segmenter.max_seconds - self._context.seconds, 0.0)
        if not segmenter.grows_trees:
            return limit
        pixels = total * USUAL_SHAPE * (segmenter.max_side or 200) ** 2
        return expected_seconds(int(pixels))
