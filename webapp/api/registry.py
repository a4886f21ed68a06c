"""Endpoints, each declared once: routing, rights, checks, documentation and tests read one list."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from django.http import HttpRequest, HttpResponseBase
from pydantic import BaseModel, TypeAdapter

from webapp.accounts.models import Role

Handler = Callable[..., HttpResponseBase | BaseModel | None]
Shape = type[BaseModel]
_PARAMETER = re.compile(r"{(\w+)}")
_CONVERTERS = {"string": "str", "integer": "int"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method on one path.

    ``body`` and ``query`` are the shapes of what is sent; the shape of the answer and the kinds of
    the path's parameters are those that the handler's signature names. ``media_type`` is that of an
    answer that is a file, ``form`` lists the fields of a multipart body. ``changes`` tells whether
    the token must be allowed to change things, ``role`` the least role of its person.
    """

    method: str
    path: str
    tag: str
    summary: str
    handler: Handler
    answer: Shape | None = None
    body: Shape | None = None
    query: Shape | None = None
    form: dict[str, dict[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    media_type: str = ""
    status: int = 200
    changes: bool = False
    role: Role = Role.VIEWER
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
        return _PARAMETER.sub(lambda m: f"<{self._converter(m[1])}:{m[1]}>", self.path.lstrip("/"))

    def schema_of(self, name: str) -> dict[str, Any]:
        """Return the JSON schema of a parameter of the path."""
        return TypeAdapter(get_type_hints(self.handler)[name]).json_schema()

    def _converter(self, name: str) -> str:
        schema = self.schema_of(name)
        return "uuid" if schema.get("format") == "uuid" else _CONVERTERS[schema["type"]]


_endpoints: list[Endpoint] = []


def endpoint(method: str, path: str, **options: Any) -> Callable[[Handler], Handler]:
    """Declare the decorated function as the handler of a method on a path.

    The function gets the request, whose ``user`` is the token's person, and the parts of the path.
    It returns a shape (sent as JSON), None (204) or a response, and refuses by raising ``Problem``.
    What changes things needs the role staff unless ``role`` says otherwise.
    """

    def decorate(handler: Handler) -> Handler:
        changes = options.pop("changes", method != "GET")
        role = options.pop("role", Role.STAFF if changes else Role.VIEWER)
        returned = get_type_hints(handler)["return"]
        is_shape = inspect.isclass(returned) and issubclass(returned, BaseModel)
        _endpoints.append(
            Endpoint(
                method=method,
                path=path,
                handler=handler,
                answer=returned if is_shape else None,
                changes=changes,
                role=role,
                **options,
            )
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
