"""Files that a verb passed over: named one by one, and in one sentence if none is left."""

import sys
from collections.abc import Sequence

from engine.datasets.masks import NO_TWO_VALUES

Failures = list[dict[str, str]]
"""Name and reason of every file passed over."""


def nothing_left(skipped: Sequence[dict[str, str]]) -> str:
    """One sentence when no file could be used."""
    reason = skipped[0]["reason"].rstrip(".")
    others = f" ({len(skipped) - 1} more likewise)" if len(skipped) > 1 else ""
    hint = " Maps of labels are learned from with --classes." if NO_TWO_VALUES in reason else ""
    return f"None of the images can be used: {reason}{others}.{hint}"


def name_skipped(skipped: Sequence[dict[str, str]]) -> Sequence[dict[str, str]]:
    """Name every file passed over on stderr, and return them."""
    for row in skipped:
        own = row["reason"].startswith(row["name"])  # not so when the mask is to blame
        reason = row["reason"] if own else f"{row['name']}: {row['reason']}"
        print(f"skipped {reason}", file=sys.stderr)
    return skipped
