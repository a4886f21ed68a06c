"""Store of finished forests, networks and weights, in the checkpoint of one learning run."""

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.checkpoint import Checkpoint, OwnCheckpoint, State
from engine.core.errors import InvalidProblemError
from engine.crf.class_features import ClassExample
from engine.crf.forest import Forest, forest_from_arrays
from engine.crf.grid_features import DenseNodeFeatures, GridExample
from engine.solvers.result import LearningResult, result_from_state, result_state

KINDS = ("forest_", "weights_", "network_")
"""Beginnings of the names of parts."""


class PartStore:
    """Finished parts of one learning run, by name; in memory only if there is no checkpoint.

    A resumed run reuses each part unchanged, and so gives the same result as an uninterrupted run.
    """

    def __init__(self, checkpoint: Checkpoint | OwnCheckpoint | None = None) -> None:
        self._checkpoint = checkpoint
        saved = None if checkpoint is None else checkpoint.load()
        state: State = {} if saved is None else {name: saved[name] for name in saved}
        self._state = {k: v for k, v in state.items() if k.startswith(KINDS)}

    def forest(self, name: str) -> Forest | None:
        """Return a forest that an earlier run stored, or None."""
        arrays = self._get(f"forest_{name}_")
        return forest_from_arrays(arrays) if arrays else None

    def keep_forest(self, name: str, forest: Forest) -> None:
        """Store a forest for a later run; not safe to call from several threads."""
        self._put(f"forest_{name}_", forest.arrays())

    def arrays(self, name: str) -> State:
        """Return the arrays of a network that an earlier run stored, if there are any."""
        return self._get(f"network_{name}_")

    def keep_arrays(self, name: str, arrays: State) -> None:
        """Store the arrays of a network in place of those that it had."""
        prefix = f"network_{name}_"
        self._state = {k: v for k, v in self._state.items() if not k.startswith(prefix)}
        self._put(prefix, arrays)

    def weights(
        self,
        fit: Callable[[], LearningResult],
        name: str,
        examples: Sequence[ClassExample] | Sequence[GridExample],
        *settings: float | FloatArray | None,
        rng: np.random.Generator | None = None,
    ) -> LearningResult:
        """Return the weights that ``fit`` finds, or those stored by an earlier run.

        Stored weights are identified by name, examples and settings. ``rng`` ends in the same state
        in both cases.
        """
        if self._checkpoint is None:
            return fit()
        prefix = f"weights_{_digest(name, examples, settings)}_"
        if arrays := self._get(prefix):
            if rng is not None:
                rng.bit_generator.state = json.loads(str(arrays["rng"]))
            return result_from_state(arrays)
        result = fit()
        state = "" if rng is None else json.dumps(rng.bit_generator.state)
        self._put(prefix, {**result_state(result), "rng": np.array(state)})
        return result

    def _get(self, prefix: str) -> State:
        return {k.removeprefix(prefix): v for k, v in self._state.items() if k.startswith(prefix)}

    def _put(self, prefix: str, arrays: State) -> None:
        if self._checkpoint is not None:
            self._state |= {f"{prefix}{part}": values for part, values in arrays.items()}
            self._checkpoint.save(self._state)


def _digest(
    name: str,
    examples: Sequence[ClassExample] | Sequence[GridExample],
    settings: Sequence[float | FloatArray | None],
) -> str:
    """Return a hash of the name, examples and settings that weights are learned with."""
    digest = sha256(name.encode())
    for setting in settings:
        digest.update(b"none" if setting is None else np.asarray(setting, np.float64).tobytes())
    for example in examples:
        for array in (_said(example), example.labels):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _said(example: ClassExample | GridExample) -> NDArray[Any]:
    """Return the scores of the trees for a picture."""
    if isinstance(example, ClassExample):
        return example.features.trees
    nodes = example.features.nodes
    if not isinstance(nodes, DenseNodeFeatures):
        raise InvalidProblemError("examples: expected the node features of trees.")
    return nodes.values
