"""Results as one line of strict JSON."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def to_json_line(value: Mapping[str, Any]) -> str:
    """Return ``value`` as one line of JSON, with null for NaN and infinity, which JSON lacks."""
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        is_plain = value.dtype.kind in "iub" or (
            value.dtype.kind == "f" and np.isfinite(value).all()
        )
        return value.tolist() if is_plain else _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
