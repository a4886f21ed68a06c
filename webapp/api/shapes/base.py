"""Base classes of all shapes, and the one-sentence message for invalid input."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError, core_schema

MAX_SEED = 2**31 - 1
MAX_OFFSET = 10**9  # beyond any table, and within the integers of a database
MAX_ROW_NUMBER = 2**63 - 1
_SENTENCE = "sentence"  # type of an error whose message is complete in itself


class Answer(BaseModel):
    """Base of an endpoint's answers; read from an object with attributes of the same names."""

    model_config = ConfigDict(extra="forbid", from_attributes=True, protected_namespaces=())


class Body(BaseModel):
    """Base of request bodies. Nothing is converted: a number in quotes is text."""

    model_config = ConfigDict(extra="ignore", strict=True, protected_namespaces=())


def _key_text(value: Any) -> str:
    return str(value)


def _time_text(value: datetime) -> str:
    return value.isoformat()


# An impossible key is answered like an unknown one, so any text is accepted as a key.
Key = Annotated[
    str | UUID, BeforeValidator(_key_text), WithJsonSchema({"type": "string", "format": "uuid"})
]


def _number_of_a_row(value: int) -> int:
    return value if abs(value) <= MAX_ROW_NUMBER else 0


# Numbers that no column can hold are read as the number of no row.
RowNumber = Annotated[int, AfterValidator(_number_of_a_row)]
SentKey = Annotated[str, WithJsonSchema({"type": "string", "format": "uuid"})]
Time = Annotated[
    datetime,
    PlainSerializer(_time_text, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


FIRST_YEAR, LAST_YEAR = 1990, 2100


def _day(value: Any) -> Any:
    """Return the day that a text names, such as 2026-08-20; an answer passes a day on."""
    if isinstance(value, date):
        return value
    try:
        day = date.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise PydanticCustomError("day", "expected a day such as 2026-08-20") from error
    if len(value) != len("2026-08-20") or not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise PydanticCustomError("day", "expected a day from 1990-01-01 to 2100-12-31")
    return day


Day = Annotated[date, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]


class OneOf:
    """Annotation of a text that is one of several: a ``Literal`` of values known at run time."""

    def __init__(self, values: Iterable[str]) -> None:
        self.values = list(values)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Return the schema of a ``Literal`` of the values."""
        return core_schema.literal_schema(self.values)


def between(low: float, high: float, *, says_received: bool = True) -> tuple[Any, Any]:
    """Return the annotations of a number between two bounds, both included."""

    def check(value: Any) -> Any:
        if value is None or low <= value <= high:
            return value
        received = f", received {value}" if says_received else ""
        raise PydanticCustomError("range", f"expected {low} to {high}{received}")

    return AfterValidator(check), Field(json_schema_extra={"minimum": low, "maximum": high})


Seed = Annotated[int, *between(0, MAX_SEED, says_received=False)]
T = TypeVar("T", bound=BaseModel)


class Page(Answer, Generic[T]):
    """A page of a list."""

    items: list[T]
    total: int
    limit: int
    offset: int

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """Return the name of a page's schema: JobPage for jobs."""
        return f"{params[0].__name__}Page"


def _clamped(low: int, high: int) -> BeforeValidator:
    def read(value: Any) -> int:
        try:
            return min(max(int(value), low), high)
        except (ValueError, TypeError) as error:
            raise PydanticCustomError(_SENTENCE, "limit and offset are whole numbers.") from error

    return BeforeValidator(read)


class Paging(BaseModel):
    """Query of every list."""

    limit: Annotated[int, _clamped(1, 1000)] = Field(
        100, description="Most rows in an answer, 1 to 1000."
    )
    offset: Annotated[int, _clamped(0, MAX_OFFSET)] = Field(
        0, description="Number of rows to skip from the start."
    )


class Problem(BaseModel):
    """RFC 9457 problem details; detail is one sentence for people."""

    type: str
    title: str
    status: int
    detail: str
    problems: list[str] = Field(default=[])


class Sentence(Answer):
    """The result of an action, in one sentence."""

    sentence: str


_WORDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def sentence_of(error: ValidationError) -> str:
    """Return a sentence about the first error in a body or query, by the name of its field."""
    first = error.errors(include_url=False)[0]
    kind, name = first["type"], _place(first["loc"])
    if kind == _SENTENCE:
        return str(first["msg"])
    if kind == "missing" or (first["input"] is None and kind in _WORDS):
        return f"{name} is missing."
    if kind == "extra_forbidden":
        return f"{name}: there is no such field."
    if kind in ("literal_error", "enum"):
        return f"{name}: expected one of {_choices(first['ctx']['expected'])}."
    is_huge = kind == "float_type" and type(first["input"]) is int
    if is_huge or kind in ("int_parsing_size", "finite_number"):
        return f"{name}: the number is too large."
    if kind in _WORDS:
        return f"{name}: expected {_WORDS[kind]}."
    if kind == "string_too_long":
        return f"{name}: at most {first['ctx']['max_length']} characters."
    if kind == "too_long":
        return f"{name}: at most {first['ctx']['max_length']} entries."
    if kind == "too_short":
        return f"{name}: at least {first['ctx']['min_length']} entries."
    return f"{name}: {str(first['msg']).rstrip('.')}."


def _choices(expected: str) -> str:
    return expected.replace("'", "").replace(" or ", ", ")


def _place(where: Sequence[int | str]) -> str:
    """Return a location as text: "rules.same[2]" for ("rules", "same", 2)."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text or "The body"


class Event(Answer):
    """An action of staff on a proposal or a placement: a decision, a swap, a changed rule."""

    id: int
    sentence: str
    by: str
    at: Time
    is_undone: bool

    @classmethod
    def of(cls, event: Any) -> "Event":
        """Return the answer for an event with its person."""
        return cls(
            id=event.pk,
            sentence=event.sentence,
            by=event.user.get_username() if event.user else "",
            at=event.created_at,
            is_undone=event.undone_at is not None,
        )
