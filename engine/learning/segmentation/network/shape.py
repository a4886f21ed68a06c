"""Shape of the network: a U-Net on half of the pixels, with weights in one vector."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

LEVELS = 5
"""Number of sizes of the feature maps; each is half of the one before."""

STEM = 2
"""Side in pixels of the blocks that the first layer takes as one, and that the last one returns. A
quarter of the work of a network on every pixel; trees and edges find the exact borders."""

MULTIPLE = STEM * 2 ** (LEVELS - 1)
"""Sides of what the network sees are multiples of this number of pixels."""

MOST_CHANNELS = 256


class Layer(NamedTuple):
    """Convolution of ``side`` x ``side`` pixels, from ``n_in`` to ``n_out`` channels."""

    side: int
    n_in: int
    n_out: int

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of the weights."""
        return self.side, self.side, self.n_in, self.n_out


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """Layers of a network, from its number of labels and the channels of its first level.

    Every level has two convolutions; a last one of single pixels returns the scores of all labels.

    References
    ----------
    Ronneberger, Fischer and Brox 2015, "U-Net". Shi et al. 2016, the last layer ("pixel shuffle").
    """

    n_labels: int
    width: int

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All layers, in the order of their use."""
        channels = [min(self.width * 2**k, MOST_CHANNELS) for k in range(LEVELS)]
        found = []
        n_in = 3 * STEM**2
        for n_out in channels:
            found += [Layer(3, n_in, n_out), Layer(3, n_out, n_out)]
            n_in = n_out
        for n_out in channels[-2::-1]:
            found += [Layer(3, n_in + n_out, n_out), Layer(3, n_out, n_out)]
            n_in = n_out
        return (*found, Layer(1, n_in, self.n_labels * STEM**2))

    @property
    def n_weights(self) -> int:
        """Number of weights, biases included."""
        return sum((layer.side**2 * layer.n_in + 1) * layer.n_out for layer in self.layers)

    @property
    def n_planes(self) -> int:
        """Number of maps that the network gives: one for two labels, else one per label."""
        return 1 if self.n_labels == 2 else self.n_labels

    def unpacked(self, weights: NDArray[Any]) -> Sequence[tuple[NDArray[Any], NDArray[Any]]]:
        """Return weights and biases of every layer, from one vector of shape (n_weights,)."""
        found, begin = [], 0
        for layer in self.layers:
            end = begin + layer.side**2 * layer.n_in * layer.n_out
            own = weights[begin:end].reshape(layer.shape)
            found.append((own, weights[end : end + layer.n_out]))
            begin = end + layer.n_out
        return found
