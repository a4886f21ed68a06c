"""Registry of endpoints, which routing, rights, checks, documentation and tests read."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from django.http import HttpResponseBase
from pydantic import BaseModel, TypeAdapter

from webapp.accounts.models import Role
from webapp.accounts.requests import SignedInRequest
from webapp.api.models import ApiToken

Handler = Callable[..., HttpResponseBase | BaseModel | None]
Shape = type[BaseModel]
_PARAMETER = re.compile(r"{(\w+)}")
_CONVERTERS = {"string": "str", "integer": "int"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method on one path.

    ``body`` and ``query`` are the shapes of the request; the handler's signature gives the shape of
    the answer and the types of the path's parameters. ``media_type`` is the type of an answer that
    is a file, ``form`` lists the fields of a multipart body. ``changes`` is True if the token must
    be allowed to change things; ``role`` is the lowest role that the token's person needs.
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
        """Name of the operation in generated clients."""
        return self.handler.__name__

    @property
    def path_parameters(self) -> list[str]:
        """Names in braces in the path, in order."""
        return _PARAMETER.findall(self.path)

    @property
    def route(self) -> str:
        """Path in the syntax of Django's URL patterns."""
        return _PARAMETER.sub(lambda m: f"<{self._converter(m[1])}:{m[1]}>", self.path.lstrip("/"))

    def schema_of(self, name: str) -> dict[str, Any]:
        """Return the JSON schema of a parameter of the path."""
        return TypeAdapter(get_type_hints(self.handler)[name]).json_schema()

    def _converter(self, name: str) -> str:
        schema = self.schema_of(name)
        return "uuid" if schema.get("format") == "uuid" else _CONVERTERS[schema["type"]]


_endpoints: list[Endpoint] = []


def endpoint(method: str, path: str, **options: Any) -> Callable[[Handler], Handler]:
    """Return a decorator that declares a function as the handler of a method on a path.

    The function gets the request, whose ``user`` is the token's person, and the parts of the path.
    It returns a shape (sent as JSON), None (204) or a response, and refuses by raising ``Problem``.
    A method that changes things needs the role staff unless ``role`` is given.
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


class Request(SignedInRequest):
    """Request of a program that acts for a person by a token."""

    api_token: ApiToken
