"""Published answers to UAI files: partition functions and marginals."""

from pathlib import Path

import numpy as np


def read_uai_log_partition(path: Path) -> float:
    """The log10 of Z that a ``.PR`` file states."""
    kind, value = path.read_text(encoding="ascii").split()
    assert kind == "PR", path
    return float(value)


def read_uai_marginals(path: Path) -> list[np.ndarray]:
    """One vector of probabilities a variable, of a ``.MAR`` file."""
    kind, count, *words = path.read_text(encoding="ascii").split()
    assert kind == "MAR", path
    vectors = []
    for _ in range(int(count)):
        n_states = int(words[0])
        vectors.append(np.array(words[1 : 1 + n_states], dtype=float))
        words = words[1 + n_states :]
    assert words == [], path
    return vectors
