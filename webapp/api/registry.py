"""Endpoints, each declared once: routing, rights, documentation and tests read the same list."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponseBase

Handler = Callable[..., HttpResponseBase | dict[str, Any] | None]
_PARAMETER = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Query:
    """A parameter of the query."""

    name: str
    description: str
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method on one path.

    ``body`` and ``answer`` name schemas of :mod:`webapp.api.schemas`; ``media_type`` is that of an
    answer that is a file. ``form`` lists the fields of a multipart body. ``changes`` tells whether
    the token must be allowed to change things.
    """

    method: str
    path: str
    tag: str
    summary: str
    handler: Handler
    answer: str = ""
    body: str = ""
    form: dict[str, dict[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    media_type: str = ""
    queries: tuple[Query, ...] = ()
    status: int = 200
    changes: bool = False
    description: str = ""

    @property
    def operation_id(self) -> str:
        """A name for generated clients."""
        return self.handler.__name__

    @property
    def path_parameters(self) -> list[str]:
        """Names in braces, in order."""
        return _PARAMETER.findall(self.path)

    @property
    def route(self) -> str:
        """The path as Django's URL patterns want it."""
        return _PARAMETER.sub(lambda m: f"<{_converter(m[1])}:{m[1]}>", self.path.lstrip("/"))


def _converter(name: str) -> str:
    return {"kind": "str", "pair_id": "int", "file_format": "str"}.get(name, "uuid")


_endpoints: list[Endpoint] = []


def endpoint(method: str, path: str, **options: Any) -> Callable[[Handler], Handler]:
    """Declare the decorated function as the handler of a method on a path.

    The function gets the request, whose ``user`` is the token's person, and the parts of the path.
    It returns a dict (sent as JSON), None (204) or a response, and refuses by raising ``Problem``.
    """

    def decorate(handler: Handler) -> Handler:
        changes = options.pop("changes", method != "GET")
        _endpoints.append(
            Endpoint(method=method, path=path, handler=handler, changes=changes, **options)
        )
        return handler

    return decorate


def endpoints() -> tuple[Endpoint, ...]:
    """Return every endpoint in the order of declaration."""
    return tuple(_endpoints)


def by_path() -> Iterator[tuple[str, list[Endpoint]]]:
    """Yield each path with its endpoints."""
    paths: dict[str, list[Endpoint]] = {}
    for entry in _endpoints:
        paths.setdefault(entry.path, []).append(entry)
    yield from paths.items()


Request = HttpRequest
