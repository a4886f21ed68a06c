"""Reading uploaded tables with the engine's reader; its errors become refusals of the web."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.tabular import reading
from engine.tabular.causes import ActionError
from engine.tabular.source import Source, TableError
from engine.tabular.table import Table
from webapp.common.errors import Refusal


class TableRefusal(Refusal):
    """Refusal of a file that is not a table, or of an act that does not fit it."""


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors of the reader into refusals that pages and the API show."""
    try:
        yield
    except (TableError, ActionError) as error:
        raise TableRefusal(str(error)) from error


def read_source(size: int, read: Callable[[], bytes]) -> Source:
    """Return all sheets of an upload of ``size`` bytes; raise TableRefusal with one sentence."""
    with refusals():
        reading.check_file_size(size)
        return reading.read_source(read())


def read_table(size: int, read: Callable[[], bytes]) -> Table:
    """Return the most likely table of an upload; raise TableRefusal with one sentence."""
    with refusals():
        reading.check_file_size(size)
        return reading.read_table(read())
