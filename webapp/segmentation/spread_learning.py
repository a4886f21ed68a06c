"""Learning on more hosts than one's own, where an installation has them."""

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

log = structlog.get_logger(__name__)

ATTEMPTS = 3
"""With the hosts that are there; after that the job's own host does it alone."""

PATIENCE = 10.0
"""Seconds for the scheduler to answer."""

LOST = "A host went away; going on from the last checkpoint"


def train_linear(
    context: JobContext,
    segmenter: Segmenter,
    learned: LabelledFiles,
    held_out: LabelledFiles,
    options: dict[str, Any],
) -> Any:
    """Learn linear weights, on all hosts where that is worth it.

    Where a host is lost meanwhile, learning goes on from its checkpoint with those that are left.
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
            context.report(LOST)
    return learn(None)


def is_large(segmenter: Segmenter, files: Iterable[ImageFile]) -> bool:
    """Whether the models of these pictures have so many pixels that other hosts are a help."""
    pixels = 0.0
    for file in files:
        shrunk = min(1.0, segmenter.max_side / max(file.width, file.height, 1))
        pixels += file.width * file.height * shrunk**2
    return pixels >= settings.SPREAD_PIXELS
