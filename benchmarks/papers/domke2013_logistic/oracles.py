"""Function classes with a logistic-loss oracle that takes a bias: zero to a multilayer perceptron.

    fit: minimise sum_k [ log sum_y exp( g(x_k, y) + b_k(y) ) - g(x_k, y_k) - b_k(y_k) ]

Each fit starts from the last one, and never ends with a larger loss.
"""

from typing import Protocol

import numpy as np
from scipy.optimize import minimize
from sklearn.tree import DecisionTreeRegressor

from engine.core.arguments import FloatArray, IntArray

SHRINKAGE = 0.25
LEAF = 0.05  # share of the data that a leaf holds at least
TREES = 4  # a fit
DEPTH = 4
HIDDEN = 20
STEPS = 40  # of L-BFGS a fit
RIDGE = 1e-5  # of the mean loss


class Energy(Protocol):
    """A function g of features (N, d) to scores (N, C)."""

    def scores(self, features: FloatArray) -> FloatArray:
        """Return g, shape (N, C)."""

    def fit(self, features: FloatArray, labels: IntArray, bias: FloatArray) -> None:
        """Lower the logistic loss with a bias (N, C)."""


def logistic_loss(scores: FloatArray, labels: IntArray) -> tuple[float, FloatArray]:
    """Return the summed loss and the probabilities, (N, C)."""
    norm = np.logaddexp.reduce(scores, axis=1)
    chances = np.exp(scores - norm[:, None])
    return float((norm - scores[np.arange(len(labels)), labels]).sum()), chances


class Zero:
    """g = 0."""

    def __init__(self, classes: int, rng: np.random.Generator) -> None:
        self._classes = classes

    def scores(self, features: FloatArray) -> FloatArray:
        return np.zeros((len(features), self._classes))

    def fit(self, features: FloatArray, labels: IntArray, bias: FloatArray) -> None:
        """Nothing to learn."""


class Perceptron:
    """Layers by L-BFGS: none hidden is the linear class; a constant column makes the constant."""

    def __init__(
        self,
        classes: int,
        rng: np.random.Generator,
        hidden: int = HIDDEN,
        *,
        constant: bool = False,
    ) -> None:
        self._classes, self._rng, self._hidden, self._constant = classes, rng, hidden, constant
        self._weights: FloatArray | None = None
        self._centre: FloatArray = np.zeros(0)
        self._scale: FloatArray = np.ones(0)

    def scores(self, features: FloatArray) -> FloatArray:
        if self._weights is None:
            return np.zeros((len(features), self._classes))
        return self._forward(self._weights, self._prepare(features))[0]

    def fit(self, features: FloatArray, labels: IntArray, bias: FloatArray) -> None:
        if self._weights is None:
            self._centre, self._scale = features.mean(axis=0), features.std(axis=0) + 1e-9
        inputs = self._prepare(features)
        if self._weights is None:
            self._weights = self._first_weights(inputs.shape[1])

        def loss(weights: FloatArray) -> tuple[float, FloatArray]:
            outputs, middle = self._forward(weights, inputs)
            value, chances = logistic_loss(outputs + bias, labels)
            chances[np.arange(len(labels)), labels] -= 1.0
            gradient = self._backward(weights, inputs, middle, chances)
            n = len(labels)
            penalty = 0.5 * RIDGE * float(weights @ weights)
            return value / n + penalty, gradient / n + RIDGE * weights

        found = minimize(
            loss, self._weights, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
        )
        self._weights = found.x

    def _prepare(self, features: FloatArray) -> FloatArray:
        ones = np.ones((len(features), 1))
        if self._constant:
            return ones
        return np.hstack([(features - self._centre) / self._scale, ones])

    def _first_weights(self, width: int) -> FloatArray:
        if self._hidden == 0:
            return np.zeros(width * self._classes)
        first = self._rng.normal(size=width * self._hidden) / np.sqrt(width)
        return np.concatenate([first, np.zeros((self._hidden + 1) * self._classes)])

    def _split(self, weights: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
        cut = width * self._hidden
        return weights[:cut].reshape(width, self._hidden), weights[cut:].reshape(-1, self._classes)

    def _forward(self, weights: FloatArray, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self._hidden == 0:
            return inputs @ weights.reshape(-1, self._classes), inputs
        first, second = self._split(weights, inputs.shape[1])
        middle = np.hstack([np.tanh(inputs @ first), np.ones((len(inputs), 1))])
        return middle @ second, middle

    def _backward(
        self, weights: FloatArray, inputs: FloatArray, middle: FloatArray, residual: FloatArray
    ) -> FloatArray:
        if self._hidden == 0:
            return np.asarray((inputs.T @ residual).ravel())
        _, second = self._split(weights, inputs.shape[1])
        back = (residual @ second[:-1].T) * (1.0 - middle[:, :-1] ** 2)
        return np.concatenate([(inputs.T @ back).ravel(), (middle.T @ residual).ravel()])


class Boosting:
    """Regression trees on the slopes, leaf values by a Newton step, scaled; each fit adds some."""

    def __init__(self, classes: int, rng: np.random.Generator) -> None:
        self._classes = classes
        self._trees: list[tuple[DecisionTreeRegressor, FloatArray]] = []

    def scores(self, features: FloatArray) -> FloatArray:
        total = np.zeros((len(features), self._classes))
        rows = features.astype(np.float32)  # once, where each tree would check and convert them
        for tree, values in self._trees:
            total += values[tree.tree_.apply(rows)]
        return total

    def fit(self, features: FloatArray, labels: IntArray, bias: FloatArray) -> None:
        scores = self.scores(features) + bias
        for _ in range(TREES):
            loss, chances = logistic_loss(scores, labels)
            residual = -chances
            residual[np.arange(len(labels)), labels] += 1.0
            tree = DecisionTreeRegressor(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=0)
            leaf = tree.fit(features, residual).apply(features)
            values = np.zeros((tree.tree_.node_count, self._classes))
            for c in range(self._classes):
                rise = np.bincount(leaf, residual[:, c], len(values))
                bend = np.bincount(leaf, chances[:, c] * (1.0 - chances[:, c]), len(values))
                values[:, c] = SHRINKAGE * np.clip(rise / (bend + 1e-9), -4.0, 4.0)
            while logistic_loss(scores + values[leaf], labels)[0] > loss:
                values *= 0.5
                if np.abs(values).max() < 1e-9:
                    return
            self._trees.append((tree, values))
            scores = scores + values[leaf]


CLASSES = {
    "zero": Zero,
    "constant": lambda classes, rng: Perceptron(classes, rng, 0, constant=True),
    "linear": lambda classes, rng: Perceptron(classes, rng, 0),
    "boosting": Boosting,
    "MLP": Perceptron,
}
