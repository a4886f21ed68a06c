"""JSON that strangers send, as text that a database keeps."""

import json
from typing import Any


def read_json(content: bytes) -> Any:
    """Return what JSON says.

    Raises
    ------
    ValueError
        If it is none, is nested too deeply, or holds a zero byte or half a surrogate pair: escapes
        may write these, and no database takes them.
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
