"""JSON from outside, as text that a database accepts."""

import json
from typing import Any


def read_json(content: bytes) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    ValueError
        If it is invalid, is nested too deeply, or holds a zero byte or half a surrogate pair:
        escapes can write these, and no database accepts them.
    """
    try:
        tree = json.loads(content)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    text = json.dumps(tree, ensure_ascii=False)
    if r"\u0000" in text:
        raise ValueError("a zero byte")
    text.encode()
    return tree
