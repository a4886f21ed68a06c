"""Learning on several hosts, if an installation has them."""

from collections.abc import Iterable
from typing import Any

import structlog
from django.conf import settings

from engine import train_segmentation
from engine.core.hosts import HostLostError, Hosts
from engine.learning.segmentation.dask_hosts import DaskHosts
from webapp.jobs.context import JobContext
from webapp.segmentation.labelled_files import LabelledFiles
from webapp.segmentation.models import ImageFile, Segmenter
from webapp.translation.lazy import gettext_lazy

log = structlog.get_logger(__name__)

ATTEMPTS = 3
"""Attempts with the available hosts; after that the job's own host learns alone."""

PATIENCE = 10.0
"""Seconds to wait for the scheduler."""

LOST = gettext_lazy("A host went away; going on from the last checkpoint")


def train_linear(
    context: JobContext,
    segmenter: Segmenter,
    learned: LabelledFiles,
    held_out: LabelledFiles,
    options: dict[str, Any],
) -> Any:
    """Train linear weights, on all hosts if that is faster.

    If a host is lost meanwhile, learning continues from its checkpoint on the remaining hosts.
    """
    options = options | {"solver": segmenter.solver, "checkpoint": context.checkpoint}

    def learn(hosts: Hosts | None) -> Any:
        images, masks, maps = learned.in_step()
        holdout = held_out.in_step()
        return train_segmentation(images, masks, maps=maps, holdout=holdout, hosts=hosts, **options)

    wanted = segmenter.solver == Segmenter.Solver.THETA and is_large(segmenter, learned.files)
    for _ in range(ATTEMPTS if wanted and settings.DASK_SCHEDULER else 0):
        try:
            with DaskHosts(settings.DASK_SCHEDULER, seconds=PATIENCE) as hosts:
                log.info("learning is spread", hosts=hosts.count)
                return learn(hosts)
        except HostLostError as error:
            log.warning("a host of a learning is lost", error=str(error))
            context.report(str(LOST))
    return learn(None)


def is_large(segmenter: Segmenter, files: Iterable[ImageFile]) -> bool:
    """Return True if the models have enough pixels for other hosts to make learning faster."""
    pixels = 0.0
    for file in files:
        shrunk = min(1.0, segmenter.max_side / max(file.width, file.height, 1))
        pixels += file.width * file.height * shrunk**2
    return pixels >= settings.SPREAD_PIXELS
