"""Training of the network of one fold with JAX: augmentation, loss and steps on the device."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.learning.segmentation.network.shape import LEVELS, STEM, NetworkShape

Vector = NDArray[np.float32]

HOW_TO_GET = (
    'Learning a network needs JAX, which is not installed: run pip install ".[network]", and with '
    'a graphics card of NVIDIA pip install "jax[cuda13]".'
)

PEAK_RATE, WARM_UP, DECAY = 3e-3, 0.15, 1e-2
"""Largest step size, share of the steps in which it grows, and decay of the weights."""

FIRST_MOMENT, SECOND_MOMENT, TINY = 0.9, 0.99, 1e-8
AVERAGE = 0.98
"""Factor a step of the moving average of the weights, which is the result."""

SCALES, TILT, SHIFT = 0.3, 0.2, 0.08
"""Range of the logarithm of the size, of the angle (radians) and of the shift (share of the side)
of augmented pictures."""

GAIN, OFFSET = 0.2, 0.2
"""Range of the factor and of the offset of a colour channel, which is from -1 to 1."""

DROPPED = 0.2
"""Share of the channels of the smallest feature maps that a step leaves out."""

VARIANCE_FLOOR = 1e-5
N_STATISTICS = 24
"""Number of batches from which the normalisation of the finished network is measured."""


def network_available() -> str | None:
    """Return None if networks can be learned here, or the sentence that says what is missing.

    Returns
    -------
    str or None

    Examples
    --------
    >>> sentence = network_available()
    >>> sentence is None or "pip install" in sentence
    True
    """
    return None if find_spec("jax") else HOW_TO_GET


def check_network_available() -> None:
    """Raise InvalidProblemError with one sentence unless networks can be learned here."""
    if (sentence := network_available()) is not None:
        raise InvalidProblemError(sentence)


def _jax() -> Any:
    """Import JAX, which takes only the memory of a card that it uses, and repeats its sums."""
    check_network_available()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_gpu_deterministic_ops" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true".strip()
    import jax

    return jax


def device_name() -> str:
    """Return the kind of device that networks are learned on: "cpu", "gpu" or another."""
    return str(_jax().default_backend()).casefold()


class State(NamedTuple):
    """Weights of an unfinished network, moments of their gradients, and their moving average."""

    weights: Any
    first: Any
    second: Any
    average: Any


@dataclass(frozen=True, slots=True)
class Steps:
    """Compiled functions of the training of one shape of network.

    Parameters
    ----------
    start : from a seed to the first `State`
    step : from state, pictures, batch, number of the step, and rate to the next state and its loss
    finish : from state, pictures and batches to the weights of a `Network`
    """

    start: Callable[[int], State]
    step: Callable[..., tuple[State, Any]]
    finish: Callable[..., Vector]


class Stack(NamedTuple):
    """All pictures in one array: colours (N, H, W, 3), labels (N, H, W), and own sizes (N, 2)."""

    colours: Any
    labels: Any
    sizes: Any


def rate_at(done: float) -> float:
    """Return the step size after this share of the training: one cycle, up and down again.

    References
    ----------
    Smith and Topin 2018, "Super-convergence".
    """
    if done < WARM_UP:
        return float(PEAK_RATE * (0.04 + 0.96 * (1 - np.cos(np.pi * done / WARM_UP)) / 2))
    rest = min((done - WARM_UP) / (1 - WARM_UP), 1.0)
    return float(PEAK_RATE * (0.001 + 0.999 * (1 + np.cos(np.pi * rest)) / 2))


def compile_steps(
    shape: NetworkShape,
    window: tuple[int, int],
    class_weights: tuple[float, ...],
    position: bool,
) -> Steps:
    """Return the functions that train a network on windows of this many rows and columns.

    The step of training, which takes long to compile, depends on windows and labels only: other
    pictures need no new one.
    """
    jax = _jax()
    batch_of = _compile_batches(window, position)
    descend, measure = _compile_network(shape)
    weights = jax.device_put(np.array(class_weights, dtype=np.float32))

    def start(seed: int) -> State:
        vector = jax.device_put(_first_weights(shape, seed))
        nothing = jax.device_put(np.zeros(vector.shape, dtype=np.float32))
        return State(vector, nothing, nothing, vector)

    def step(
        state: State, stack: Stack, chosen: Any, key: Any, number: float, rate: float
    ) -> tuple[State, Any]:
        x, labels = batch_of(stack, chosen, key)
        return descend(state, x, labels, key, number, rate, weights)  # type: ignore[no-any-return]

    def finish(state: State, stack: Stack, batches: NDArray[np.int64], key: Any) -> Vector:
        """Return the averaged weights, with the normalisation measured on batches folded in."""
        found = []
        for number, chosen in enumerate(batches):
            x, _ = batch_of(stack, chosen, jax.random.fold_in(key, number))
            found.append(jax.device_get(measure(state.average, x)))
        parts = []
        for place, layer in enumerate(_layered(shape, jax.device_get(state.average), np)):
            w, offset = layer["w"], layer["o"]
            if "g" in layer:
                means = np.stack([one[place][0] for one in found])
                within = np.stack([one[place][1] for one in found])
                mean, variance = means.mean(axis=0), within.mean(axis=0) + means.var(axis=0)
                scale = layer["g"] / np.sqrt(variance + VARIANCE_FLOOR)
                w, offset = w * scale, offset - mean * scale
            parts += [w.ravel(), offset]
        return np.concatenate(parts).astype(np.float32)

    return Steps(start, step, finish)


def _first_weights(shape: NetworkShape, seed: int) -> Vector:
    """Return the weights that training starts from, in one vector."""
    rng = np.random.default_rng(seed)
    parts = []
    for layer in shape.layers:
        deviation = np.sqrt((2 if layer.side > 1 else 0.02) / (layer.side**2 * layer.n_in))
        gains = [np.ones(layer.n_out)] * (layer.side > 1)
        parts += [*gains, np.zeros(layer.n_out), rng.normal(0, deviation, layer.shape).ravel()]
    return np.concatenate(parts).astype(np.float32)


def _layered(shape: NetworkShape, vector: Any, numpy: Any) -> list[dict[str, Any]]:
    """Return gains "g" (but of the last layer), offsets "o" and weights "w" of every layer.

    ``numpy`` is the module of the vector: NumPy's, or JAX's.
    """
    sizes: list[dict[str, tuple[int, ...]]] = []
    for layer in shape.layers:
        gains = {"g": (layer.n_out,)} if layer.side > 1 else {}
        sizes.append({**gains, "o": (layer.n_out,), "w": layer.shape})
    ends = np.cumsum([np.prod(size) for own in sizes for size in own.values()])
    pieces = iter(numpy.split(vector, ends[:-1]))
    return [{name: next(pieces).reshape(size) for name, size in own.items()} for own in sizes]


@lru_cache(maxsize=4)
def _compile_batches(window: tuple[int, int], position: bool) -> Callable[..., tuple[Any, Any]]:
    """Return the function from pictures, choice and key to windows (B, rows, columns, 3) and their
    labels (B, rows, columns)."""
    jax = _jax()
    jnp = jax.numpy

    def mirrored(place: Any, side: Any) -> Any:
        """Return places within 0 .. side - 1, as if the picture were mirrored at its borders."""
        around = jnp.mod(place + 0.5, 2 * side)
        return jnp.clip(jnp.where(around > side, 2 * side - around, around) - 0.5, 0, side - 1)

    def augmented(key: Any, colours: Any, labels: Any, size: Any) -> tuple[Any, Any]:
        """Return a random window of a picture: turned, scaled, mirrored, and of other colours."""
        draw = jax.random.uniform(key, (12,), minval=-1.0, maxval=1.0)
        scale = jnp.exp(SCALES * draw[0])
        angle = (TILT if position else np.pi) * draw[1]
        across = jnp.where(draw[2] < 0, -1.0, 1.0)
        down = jnp.where(draw[3] < 0, -1.0, 1.0) if not position else 1.0
        sides = size.astype(jnp.float32)
        room = jnp.maximum(sides - jnp.asarray(window, jnp.float32), 0.0) / 2
        centre = (sides - 1) / 2 + draw[4:6] * (room + SHIFT * sides)
        y = (jnp.arange(window[0]) - (window[0] - 1) / 2)[:, None] * down * scale
        x = (jnp.arange(window[1]) - (window[1] - 1) / 2)[None] * across * scale
        rows = mirrored(centre[0] + jnp.cos(angle) * y - jnp.sin(angle) * x, sides[0])
        columns = mirrored(centre[1] + jnp.sin(angle) * y + jnp.cos(angle) * x, sides[1])
        top, left = jnp.floor(rows).astype(int), jnp.floor(columns).astype(int)
        bottom = jnp.minimum(top + 1, size[0] - 1)
        right = jnp.minimum(left + 1, size[1] - 1)
        a, b = (rows - top)[:, :, None], (columns - left)[:, :, None]
        part = colours.astype(jnp.float32)
        mixed = (1 - a) * ((1 - b) * part[top, left] + b * part[top, right])
        mixed += a * ((1 - b) * part[bottom, left] + b * part[bottom, right])
        values = mixed / 127.5 - 1
        values = values * (1 + GAIN * draw[6:9]) + OFFSET * draw[9]
        values = jnp.clip(values + OFFSET / 4 * draw[9:12], -1, 1)
        nearest = labels[jnp.round(rows).astype(int), jnp.round(columns).astype(int)]
        return values, nearest

    def batch_of(stack: Stack, chosen: Any, key: Any) -> tuple[Any, Any]:
        keys = jax.random.split(jax.random.split(key)[0], len(chosen))
        of = stack.colours[chosen], stack.labels[chosen], stack.sizes[chosen]
        colours, labels = jax.vmap(augmented)(keys, *of)
        return colours, labels

    return jax.jit(batch_of)  # type: ignore[no-any-return]


@lru_cache(maxsize=4)
def _compile_network(shape: NetworkShape) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the step of training on a batch, and the function from weights and windows to mean
    and variance of every layer."""
    jax = _jax()
    jnp, lax = jax.numpy, jax.lax
    is_narrow = device_name() != "cpu"
    n_labels = shape.n_labels

    def convolved(w: Any, x: Any) -> Any:
        if is_narrow:
            w, x = w.astype(jnp.bfloat16), x.astype(jnp.bfloat16)
        out = lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return out.astype(jnp.float32)

    def unit(layer: dict[str, Any], x: Any, seen: list[Any]) -> Any:
        x = convolved(layer["w"], x)
        mean = x.mean((0, 1, 2))
        variance = jnp.square(x - mean).mean((0, 1, 2))
        seen.append((mean, variance))
        scale = layer["g"] * lax.rsqrt(variance + VARIANCE_FLOOR)
        return jax.nn.relu((x - mean) * scale + layer["o"])

    def forward(layers: list[dict[str, Any]], x: Any, keep: Any) -> tuple[Any, list[Any]]:
        """Return scores (B, rows, columns, L), and mean and variance of every layer."""
        b, h, v, c = x.shape
        x = x.reshape(b, h // STEM, STEM, v // STEM, STEM, c).swapaxes(2, 3)
        x = x.reshape(b, h // STEM, v // STEM, STEM**2 * c)
        seen: list[Any] = []
        passed = []
        for level in range(LEVELS):
            if level:
                n, rows, columns, depth = x.shape
                x = x.reshape(n, rows // 2, 2, columns // 2, 2, depth).max((2, 4))
            x = unit(layers[2 * level + 1], unit(layers[2 * level], x, seen), seen)
            passed.append(x)
        x = x * keep
        for step in range(LEVELS - 1):
            up = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
            x = jnp.concatenate([up, passed[LEVELS - 2 - step]], -1)
            place = 2 * (LEVELS + step)
            x = unit(layers[place + 1], unit(layers[place], x, seen), seen)
        out = x @ layers[-1]["w"][0, 0] + layers[-1]["o"]
        out = out.reshape(b, h // STEM, v // STEM, STEM, STEM, n_labels).swapaxes(2, 3)
        return out.reshape(b, h, v, n_labels), seen

    def loss_of(vector: Any, x: Any, labels: Any, key: Any, class_weights: Any) -> Any:
        """Return cross-entropy and Dice loss of the known pixels."""
        depth = shape.layers[2 * LEVELS - 1].n_out
        keep = jax.random.bernoulli(key, 1 - DROPPED, (len(x), 1, 1, depth)) / (1 - DROPPED)
        scores, _ = forward(_layered(shape, vector, jnp), x, keep)
        said = jax.nn.log_softmax(scores)
        truth = jax.nn.one_hot(labels, n_labels)  # of an unknown label all zeros
        known = truth.sum(-1, keepdims=True)
        weighted = truth * class_weights
        entropy = -(weighted * said).sum() / jnp.maximum(weighted.sum(), 1.0)
        p = jnp.exp(said) * known
        both, each = (p * truth).sum((1, 2)), (p + truth).sum((1, 2))
        there = (truth.sum((1, 2)) > 0).astype(jnp.float32)
        dice = ((1 - (2 * both + 1) / (each + 1)) * there).sum() / jnp.maximum(there.sum(), 1.0)
        return entropy + dice

    def descend(
        state: State, x: Any, labels: Any, key: Any, number: Any, rate: Any, class_weights: Any
    ) -> tuple[State, Any]:
        own = jax.random.split(key)[1]
        loss, gradient = jax.value_and_grad(loss_of)(state.weights, x, labels, own, class_weights)
        first = FIRST_MOMENT * state.first + (1 - FIRST_MOMENT) * gradient
        second = SECOND_MOMENT * state.second + (1 - SECOND_MOMENT) * gradient**2
        m = first / (1 - FIRST_MOMENT**number)
        v = second / (1 - SECOND_MOMENT**number)
        weights = state.weights - rate * (m / (jnp.sqrt(v) + TINY) + DECAY * state.weights)
        share = jnp.minimum(AVERAGE, number / (number + 9.0))
        average = share * state.average + (1 - share) * weights
        return State(weights, first, second, average), loss

    def measure(vector: Any, x: Any) -> list[Any]:
        return forward(_layered(shape, vector, jnp), x, 1.0)[1]

    return jax.jit(descend), jax.jit(measure)
