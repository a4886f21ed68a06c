"""Undo of choices: each step keeps little more than the parts that a change replaced."""

from collections.abc import Mapping, Sequence
from typing import Any

MAX_STEPS = 20
_COLUMNS = "columns"


def undo_step(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the step from the plain data ``after`` back to ``before``: the differing parts.

    A button seldom changes more than one column, so columns are stored one by one if their number
    stayed the same.
    """
    same = _is_list(before.get(_COLUMNS)) and _is_list(after.get(_COLUMNS))
    same = same and len(before[_COLUMNS]) == len(after[_COLUMNS])
    step: dict[str, Any] = {
        "parts": {
            name: value
            for name, value in before.items()
            if after.get(name) != value and not (same and name == _COLUMNS)
        },
        "gone": sorted(set(after) - set(before)),
    }
    if same:
        pairs = zip(before[_COLUMNS], after[_COLUMNS], strict=True)
        step[_COLUMNS] = {str(k): old for k, (old, new) in enumerate(pairs) if old != new}
    return step


def taken_back(now: Mapping[str, Any], step: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices before the change that made ``step``."""
    gone = set(step["gone"])
    before: dict[str, Any] = {
        name: value for name, value in now.items() if name not in gone
    } | step["parts"]
    if step.get(_COLUMNS):
        columns = list(before[_COLUMNS])
        for position, old in step[_COLUMNS].items():
            columns[int(position)] = old
        before[_COLUMNS] = columns
    return before


def with_step(steps: Sequence[dict[str, Any]], step: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the last steps with one more."""
    return [*steps, step][-MAX_STEPS:]


def _is_list(value: Any) -> bool:
    return isinstance(value, list)
