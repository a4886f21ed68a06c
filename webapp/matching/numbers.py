"""Numbers of a model for any two students: the model of a file, probabilities and reasons."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import load_roommate_model
from engine.learning.roommates.model import RoommateModel
from webapp.files import store

KEPT_MODELS = 32  # about 100 kB each
MAX_CHIPS = 3
SMALL_REASON = 0.05  # nats: smaller reasons get no chip
WEAK_REASON = 0.1  # nats: the filter counts larger negative reasons as speaking against a pair


def kept_model(path: Path) -> RoommateModel:
    """Return the model of a file; a process caches the models that it read last.

    A file is replaced, never changed: equal time and size mean equal content.
    """
    try:
        stat = store.get(path).stat()
    except FileNotFoundError:
        return load_roommate_model(path)  # raises its own error about a missing file
    return _read_model(path, stat.st_ino, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=KEPT_MODELS)
def _read_model(path: Path, *_: int) -> RoommateModel:
    return load_roommate_model(path)


def pair_probability(
    probability: float, doubts: NDArray[Any], allowed: NDArray[Any]
) -> dict[str, float]:
    """Return a pair's probability, multiple of an even draw, mean uncertainty and its share."""
    mean_allowed = float(np.mean(allowed))
    doubt = float(np.mean(doubts))
    return {
        "probability": probability,
        "multiple": probability * mean_allowed,
        "doubt": doubt,
        "allowed": mean_allowed,
        # A student with one possible partner is certain of that partner, whatever the share.
        "doubt_share": doubt / mean_allowed if mean_allowed > 1 else 0.0,
    }


def reasons(amounts: Mapping[str, float]) -> dict[str, Any]:
    """Return the largest reasons as chips, and the numbers of the questions that speak against.

    ``amounts`` maps every question of the model, in order, to its part of the score minus that of
    an average partner (nats).
    """
    largest = sorted(amounts, key=lambda name: -abs(amounts[name]))[:MAX_CHIPS]
    chips = [[name, amounts[name] > 0] for name in largest if abs(amounts[name]) >= SMALL_REASON]
    against = [k for k, amount in enumerate(amounts.values()) if amount <= -WEAK_REASON]
    return {"chips": chips, "weak": "|" + "".join(f"{k}|" for k in against)}
