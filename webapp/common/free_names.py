"""Unique names, to distinguish objects that are made twice."""

import re
from itertools import count

from django.db.models import Model, QuerySet

LONGEST_NAME = 120  # characters; the field of every model has the same limit
_COUNTED = re.compile(r" \(\d{1,2}\)$")


def free_name(name: str, others: QuerySet[Model]) -> str:
    """Return the name, or "name (2)", "name (3)" and so on if one of the others has it."""
    stem = _COUNTED.sub("", name)[: LONGEST_NAME - 10]
    taken = set(others.filter(name__startswith=stem).values_list("name", flat=True))
    if name not in taken:
        return name
    return next(free for k in count(2) if (free := f"{stem} ({k})") not in taken)
