"""Parts that other applications add to a student's page, and the students whom they know."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from webapp.residents.models import ResidentPage


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of a student's page: the template, its context, and whether it is below the room."""

    template: str
    context: Mapping[str, Any]
    is_below: bool = False


_parts: list[Callable[[ResidentPage], PagePart | None]] = []
_reasons: list[Callable[[], Q]] = []


def register_page_part(function: Callable[[ResidentPage], PagePart | None]) -> None:
    """Add a part above or below the room; the function returns None for students without one."""
    _parts.append(function)


def register_page_reason(function: Callable[[], Q]) -> None:
    """Add a reason, as a filter of students, for which a sign-in opens a page before publishing."""
    _reasons.append(function)


def parts_of(page: ResidentPage) -> Sequence[PagePart]:
    """Return the parts of other applications on a page."""
    return [part for function in _parts if (part := function(page)) is not None]


def students_with_page() -> Q:
    """Return the filter of students whose page shows something before publishing."""
    found = Q(pk__in=[])
    for function in _reasons:
        found |= function()
    return found
