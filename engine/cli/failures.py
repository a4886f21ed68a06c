"""Files that a verb skipped: each is named, and one sentence reports that no file is left."""

import sys
from collections.abc import Sequence

from engine.datasets.masks import NO_TWO_VALUES

Failures = list[dict[str, str]]
"""Name and reason of every skipped file."""


def nothing_left(skipped: Sequence[dict[str, str]]) -> str:
    """Return one sentence for the case that no file could be used."""
    reason = skipped[0]["reason"].rstrip(".")
    others = f" ({len(skipped) - 1} more likewise)" if len(skipped) > 1 else ""
    hint = " Maps of labels are learned from with --classes." if NO_TWO_VALUES in reason else ""
    return f"None of the images can be used: {reason}{others}.{hint}"


def name_skipped(skipped: Sequence[dict[str, str]]) -> Sequence[dict[str, str]]:
    """Print the name of every skipped file to stderr, and return the names."""
    for row in skipped:
        own = row["reason"].startswith(row["name"])  # the reason names the file already
        reason = row["reason"] if own else f"{row['name']}: {row['reason']}"
        print(f"skipped {reason}", file=sys.stderr)
    return skipped
