"""Features of a grid of pixels with several classes, as linear maps and their transposes.

Node scores are weighted sums of the trees' scores s of a class and of maps given with the picture:

    theta_i(x) = a_x + b_x s_i(x) + c_x clip(s_i(x)) + sum_m d_xm map_im

Edge scores are an agreement by the edge's code, and a table of label pairs for each direction:

    theta_ij(x, y) = <g, v_ij> [x = y] + P_direction(x, y)

The parameters are one vector theta = (a, b, c, d by class; g; P_right, P_down).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import InvalidProblemError
from engine.crf.grid_features import CodeArray, EdgeFeatures, LabelScores
from engine.crf.image_features import N_EDGE_FEATURES

UNKNOWN = 255
"""Label of pixels without known class: hidden, or to be ignored."""

MOST_CLASSES = 32

SMALL_SCORE = 1.5
"""Scores within this bound have a separate weight: trees are bolder in doubt than when sure."""

AGREEMENT, FALL = 0.9, 0.04
"""Agreement of equal neighbours if edges are not learned, nats, and its decrease for each threshold
of contrast."""

ClassLabels = NDArray[np.uint8]
Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ClassLayout:
    """Layout of theta for a number of classes and maps."""

    n_classes: int
    n_maps: int = 0

    @property
    def n_node(self) -> int:
        """Number of node weights of one class."""
        return 3 + self.n_maps

    @property
    def size(self) -> int:
        """Length K of theta."""
        return self.n_classes * self.n_node + N_EDGE_FEATURES + 2 * self.n_classes**2

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return views: node weights (L, 3 + C), agreement (42,), pairs (2, L, L).

        Raises
        ------
        InvalidProblemError
            If theta has another length.
        """
        if theta.shape != (self.size,):
            raise InvalidProblemError(f"theta: expected {self.size} numbers, got {theta.shape}.")
        n, count = self.n_classes, self.n_classes * self.n_node
        edges = theta[count : count + N_EDGE_FEATURES]
        pairs = theta[count + N_EDGE_FEATURES :].reshape(2, n, n)
        return theta[:count].reshape(n, self.n_node), edges, pairs

    def plain(self) -> FloatArray:
        """Return parameters that follow the trees, with a little agreement of neighbours."""
        theta = np.zeros(self.size)
        nodes, agreement, _ = self.split(theta)
        nodes[:, 1] = 1.0
        agreement[[0, N_EDGE_FEATURES // 2]] = 0.2
        return theta

    def smooth(self) -> FloatArray:
        """Return parameters for strokes: neighbours agree unless contrast separates them."""
        theta = self.plain()
        agreement = self.split(theta)[1]
        agreement[:] = -FALL
        agreement[[0, N_EDGE_FEATURES // 2]] = AGREEMENT
        return theta


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Scores of one picture's model, nats: nodes (H, W, L), agreement by code (2, n_codes) and
    label pairs (2, L, L), right and down."""

    nodes: Scores
    agreement: FloatArray
    pairs: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ClassFeatures:
    """Features of one picture at the size of its model.

    Parameters
    ----------
    trees : ndarray, shape (rows, columns, L), float32: log-probabilities, of mean 0 per pixel.
    maps : ndarray, shape (rows, columns, C), float32: log-odds of external maps; C may be 0.
    edges : EdgeFeatures
    """

    trees: Scores
    maps: Scores
    edges: EdgeFeatures

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.trees.shape[0]), int(self.trees.shape[1])

    @property
    def layout(self) -> ClassLayout:
        """Layout of the parameters."""
        return ClassLayout(int(self.trees.shape[2]), int(self.maps.shape[2]))

    @property
    def codes(self) -> tuple[CodeArray, CodeArray]:
        """Codes of the edges to the right and down."""
        return self.edges.horizontal, self.edges.vertical

    def scores(self, theta: FloatArray) -> ClassScores:
        """Return the scores at ``theta``, shape (K,)."""
        weights, agreement, pairs = self.layout.split(theta)
        narrow = weights.astype(np.float32)
        nodes = self.trees * narrow[:, 1]
        nodes += np.clip(self.trees, -SMALL_SCORE, SMALL_SCORE) * narrow[:, 2]
        nodes += narrow[:, 0]
        if self.maps.shape[2]:
            nodes += self.maps @ narrow[:, 3:].T
        bases = (self.edges.horizontal_basis, self.edges.vertical_basis)
        by_code = np.stack([basis @ agreement for basis in bases])
        return ClassScores(nodes, by_code, np.array(pairs))

    def label_scores(self, theta: FloatArray) -> LabelScores:
        """Return the scores of every label and of every edge code's table at ``theta``."""
        scores, equal = self.scores(theta), np.eye(self.layout.n_classes)
        right, down = (
            pairs + agreement[:, None, None] * equal
            for pairs, agreement in zip(scores.pairs, scores.agreement, strict=True)
        )
        return LabelScores(scores.nodes.astype(np.float64), right, down)

    def pull_back_labels(self, slopes: LabelScores) -> FloatArray:
        """Return the gradient in theta of a function with these derivatives in the scores."""
        tables = (slopes.right, slopes.down)
        agreement = np.stack([np.trace(one, axis1=1, axis2=2) for one in tables])
        return self.pull_back(
            slopes.nodes, agreement, np.stack([one.sum(axis=0) for one in tables])
        )

    def pull_back(
        self, nodes: NDArray[np.floating], agreement: FloatArray, pairs: FloatArray
    ) -> FloatArray:
        """Return the gradient in theta of a function with these derivatives in the scores.

        With marginals in their place these are the statistics phi(tau): nodes (H, W, L), equal
        labels by code (2, n_codes) and label pairs (2, L, L).
        """
        n = self.layout.n_classes
        flat = nodes.reshape(-1, n)
        gradient = np.empty((n, self.layout.n_node))
        gradient[:, 0] = flat.sum(axis=0, dtype=np.float64)
        trees = self.trees.reshape(-1, n)
        gradient[:, 1] = np.einsum("ix,ix->x", flat, trees, dtype=np.float64)
        clipped = np.clip(trees, -SMALL_SCORE, SMALL_SCORE)
        gradient[:, 2] = np.einsum("ix,ix->x", flat, clipped, dtype=np.float64)
        if self.maps.shape[2]:
            gradient[:, 3:] = flat.T @ self.maps.reshape(len(flat), self.layout.n_maps)
        edges = agreement[0] @ self.edges.horizontal_basis
        edges = edges + agreement[1] @ self.edges.vertical_basis
        return np.concatenate([gradient.ravel(), edges, pairs.ravel()])


@dataclass(frozen=True, slots=True, eq=False)
class ClassExample:
    """Observation: a picture's features and its labels, (rows, columns) uint8.

    Labels at or above the number of classes are unknown.

    Raises
    ------
    InvalidProblemError
        If the labels have another shape than the features.
    """

    features: ClassFeatures
    labels: ClassLabels

    def __post_init__(self) -> None:
        if self.labels.shape != self.features.shape:
            raise InvalidProblemError(
                f"labels: expected shape {self.features.shape}, received {self.labels.shape}."
            )

    def observed_statistics(self) -> FloatArray:
        """Return phi(Y), shape (K,), of the known labels and of the edges between them."""
        n = self.features.layout.n_classes
        labels = np.minimum(self.labels, n).astype(np.int64)
        nodes = np.eye(n + 1)[labels][..., :n]
        by_code, by_pair = [], []
        ends = ((labels[:, :-1], labels[:, 1:]), (labels[:-1], labels[1:]))
        edges = self.features.edges
        bases = (edges.horizontal_basis, edges.vertical_basis)
        for (first, second), codes, basis in zip(ends, self.features.codes, bases, strict=True):
            equal = codes[(first == second) & (first < n)]
            by_code.append(np.bincount(equal, minlength=len(basis)).astype(np.float64))
            joint = np.bincount(((n + 1) * first + second).ravel(), minlength=(n + 1) ** 2)
            by_pair.append(joint.reshape(n + 1, n + 1)[:n, :n].astype(np.float64))
        return self.features.pull_back(nodes, np.stack(by_code), np.stack(by_pair))

    @property
    def n_known(self) -> int:
        """Number of pixels with a known label."""
        return int(np.count_nonzero(self.labels < self.features.layout.n_classes))


def centred(scores: Scores) -> Scores:
    """Return scores less their mean over the classes, read-only."""
    return read_only(scores - scores.mean(axis=-1, keepdims=True))
