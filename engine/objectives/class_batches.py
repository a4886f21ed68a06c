"""Truncated losses of several pictures of one shape at once, faster than `loss_and_gradient`.

Pictures whose pairs of labels have tables of their own sweep side by side, `LANES` at a time; see
`engine.kernels.class_batches`. All other pictures are processed one by one.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.crf.class_features import ClassExample
from engine.kernels.class_batches import LANES, reverse_batch, sweep_batch
from engine.objectives.class_losses import ScoreSlopes, begin_loss, pull_back
from engine.objectives.class_messages import ClassMessages
from engine.objectives.grid_losses import loss_and_gradient
from engine.objectives.marginal_losses import LIKELIHOOD, Gradient, LossOptions

Batch = Sequence[ClassExample]

FEWEST = LANES // 4
"""Number of pictures up to which the empty lanes cost more than the others gain."""


def in_batches(examples: Sequence[ClassExample], options: LossOptions) -> list[Batch]:
    """Group pictures that may go through the sweeps side by side."""
    by_shape: dict[object, list[ClassExample]] = {}
    is_alone = options.threshold is not None or options.is_potts
    for place, example in enumerate(examples):
        shape = (example.features.trees.shape, len(example.features.edges.horizontal_basis))
        by_shape.setdefault(place if is_alone else shape, []).append(example)
    batches: list[Batch] = []
    for alike in by_shape.values():
        groups = [alike[first : first + LANES] for first in range(0, len(alike), LANES)]
        for group in groups:
            batches += [group] if len(group) > FEWEST else [[example] for example in group]
    return batches


def batch_loss_and_gradient(batch: Batch, theta: FloatArray, options: LossOptions) -> Gradient:
    """Return the sum of the losses of a batch of `in_batches`, and its gradient, shape (K,).

    Notes
    -----
    Memory 16 L bytes a pixel, sweep and lane, as `loss_and_gradient` for each picture.
    """
    if len(batch) == 1:
        return loss_and_gradient(batch[0], theta, options)
    value, gradient = _run(batch, theta, options, is_held=False)
    if options.loss != LIKELIHOOD:
        return value, gradient
    known, slope = _run(batch, theta, options, is_held=True)
    return value - known, gradient - slope


def _run(batch: Batch, theta: FloatArray, options: LossOptions, *, is_held: bool) -> Gradient:
    """Sweep and keep all messages, then back-propagate; spare lanes repeat the last picture."""
    chains = [ClassMessages(example.features, theta) for example in batch]
    if is_held:
        for one, example in zip(chains, batch, strict=True):
            one.hold(example.labels)
    lanes = [min(lane, len(batch) - 1) for lane in range(LANES)]

    def side_by_side(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.stack([arrays[lane] for lane in lanes], axis=-1)

    fixed = (
        side_by_side([one.potentials for one in chains]),
        side_by_side([one.features.codes[0] for one in chains]),
        side_by_side([one.features.codes[1] for one in chains]),
        chains[0].tables,
        chains[0].extra,
    )
    messages = side_by_side([one.messages for one in chains])
    states = [messages.copy()]
    for _ in range(options.iterations):
        sweep_batch(*fixed, messages)
        states.append(messages.copy())
    begun = []
    for lane, (one, example) in enumerate(zip(chains, batch, strict=True)):
        one.messages[...] = messages[..., lane]
        begun.append(begin_loss(one, example, options))
    adjoint = side_by_side([part for _, part, _ in begun])
    sums = [
        side_by_side([getattr(slopes, name) for _, _, slopes in begun])
        for name in ("nodes", "extra", "pairs")
    ]
    for before, after in reversed(list(pairwise(states))):
        reverse_batch(*fixed, before, after, adjoint, *sums)
    gradient = np.zeros_like(theta)
    for lane, example in enumerate(batch):
        own = ScoreSlopes(*(total[..., lane] for total in sums))
        gradient += pull_back(example, own)
    return sum(value for value, _, _ in begun), gradient
