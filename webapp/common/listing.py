"""Lists of objects: filter by name, sort, count, page.

The cost of a list depends on its page, not on the number of objects or their size:

- ``light`` leaves the heavy columns of a model (``HEAVY``: questions, curves, digests) where they
  are;
- ``list_page`` finds the keys of a page first, so that computations per row are done only for the
  rows shown;
- a ``Tally`` counts the rows of another table for the objects of a page, by one query on that table
  alone. A count that is joined would group by every column of every joined row instead.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.core.paginator import Page, Paginator
from django.db import models

M = TypeVar("M", bound=models.Model)
M_co = TypeVar("M_co", bound=models.Model, covariant=True)

PAGE_SIZE = 50
MAX_QUERY = 100


class ArrayLength(models.Func):
    """Database function: the number of entries of a JSON column that holds a list."""

    function = "jsonb_array_length"
    output_field = models.IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Return the SQL for SQLite, which has another name for the function."""
        return super().as_sql(compiler, connection, function="json_array_length", **context)


def light(queryset: models.QuerySet[M], *related: str) -> models.QuerySet[M]:
    """Join the named relations and leave the heavy columns of all of them in the database."""
    columns = list(getattr(queryset.model, "HEAVY", ()))
    for path in related:
        model: type[models.Model] = queryset.model
        for name in path.split("__"):
            model = _related(model, name)
        columns += [f"{path}__{column}" for column in getattr(model, "HEAVY", ())]
    return (
        queryset.select_related(*related).defer(*columns) if related else queryset.defer(*columns)
    )


def _related(model: type[models.Model], name: str) -> type[models.Model]:
    related = model._meta.get_field(name).related_model
    if related is None or isinstance(related, str):
        raise TypeError(f"{model.__name__}.{name} is no relation.")
    return related


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers about the rows of another table, set on objects as attributes.

    ``owner`` is the field of ``rows`` that holds an object's key, ``numbers`` {attribute: aggregate
    over its rows}. An object without rows gets the aggregate's empty value: 0 for a count.
    """

    rows: models.QuerySet[Any]
    owner: str
    numbers: Mapping[str, models.Aggregate]

    def add_to(self, objects: Iterable[models.Model]) -> None:
        """Set the numbers on the objects, by one query."""
        objects = list(objects)
        if not objects:
            return
        mine = self.rows.filter(**{f"{self.owner}__in": [one.pk for one in objects]})
        found = {
            row.pop(self.owner): row
            for row in mine.order_by().values(self.owner).annotate(**self.numbers)
        }
        none = {
            name: number.empty_result_set_value if default is None else default
            for name, number in self.numbers.items()
            for default in [getattr(number, "default", None)]
        }
        for one in objects:
            for name, value in found.get(one.pk, none).items():
                setattr(one, name, value)


@dataclass(frozen=True, slots=True)
class Listing(Generic[M_co]):
    """One page of a list, its filter text, and its order: a name, with "-" for descending."""

    page: Page
    query: str
    sort: str = ""

    @property
    def rows(self) -> Sequence[M_co]:
        """Return the objects of the page."""
        return list(self.page.object_list)

    @property
    def is_long(self) -> bool:
        """Return True if a filter helps: there is more than a page, or a filter is set."""
        return bool(self.query) or self.page.paginator.num_pages > 1

    def __bool__(self) -> bool:
        """Return True if there are objects, or a filter, which may match none."""
        return bool(self.query) or self.page.paginator.count > 0


def page_at(rows: Any, number: str | int | None, size: int = PAGE_SIZE) -> Page:
    """Return one page of rows that are already filtered and sorted.

    An invalid ``number`` gives the first page, one beyond the end the last.
    """
    return Paginator(rows, size).get_page(number)


def list_page(
    queryset: models.QuerySet[M],
    parameters: Mapping[str, str],
    *tallies: Tally,
    search: Sequence[str] = ("name",),
    found: Callable[[models.QuerySet[M], str], models.QuerySet[M]] | None = None,
    sorts: Sequence[str] = (),
    size: int = PAGE_SIZE,
) -> Listing[M]:
    """Return the page of a list that an address requests by ``q``, ``sort`` and ``page``.

    The page is that of :func:`page_at`. ``search`` names the fields in which a search looks;
    ``found`` limits the rows to a search instead. ``sorts`` are the fields that people may sort by;
    the first is the order, descending, of an address that requests none of them.
    """
    sort = parameters.get("sort", "")
    if sorts:
        sort = sort if sort.removeprefix("-") in sorts else f"-{sorts[0]}"
        queryset = queryset.order_by(sort, "-pk")
    query = parameters.get("q", "").strip()[:MAX_QUERY] if search else ""
    if query and found is not None:
        queryset = found(queryset, query)
    elif query:
        fits = models.Q()
        for field in search:
            fits |= models.Q(**{f"{field}__icontains": query})
        queryset = queryset.filter(fits)
    keys = queryset.values_list("pk", flat=True)
    page = page_at(keys, parameters.get("page"), size)
    order = list(page.object_list)
    rows = queryset.order_by().in_bulk(order)
    page.object_list = [rows[key] for key in order if key in rows]
    for tally in tallies:
        tally.add_to(page.object_list)
    return Listing(page, query, sort if sorts else "")
