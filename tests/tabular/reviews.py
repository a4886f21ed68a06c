"""Read a file as the import page does: what it understood, and what it says after all fixes."""

from engine.tabular.choices import Choices, Role
from engine.tabular.guesses import guess_choices
from engine.tabular.preview import ColumnPreview, Preview, build_preview
from engine.tabular.reading import read_table
from engine.tabular.review import Review, review, use_all
from engine.tabular.table import Table


def reviewed(data: bytes | Table, choices: Choices | None = None) -> Review:
    """Return what the page shows of a file before anything is pressed."""
    table = read_table(data) if isinstance(data, bytes) else data
    return review(build_preview(table, choices or guess_choices(table)))


def settled(data: bytes | Table | Review) -> Review:
    """Return what the page shows after one press of "Use all fixes"."""
    first = data if isinstance(data, Review) else reviewed(data)
    table = first.preview.table
    return reviewed(table, use_all(first, lambda choices: reviewed(table, choices)))


def column_of(preview: Preview, name: str) -> ColumnPreview:
    """Return a column by its title in the file, or by its name where it is made of others."""
    return next(c for c in preview.columns if name in (c.header, c.name))


def levels_of(found: Review, name: str) -> tuple[str, ...]:
    """Return the answers of a question, in order."""
    column = column_of(found.preview, name)
    assert column.choice.role is Role.QUESTION, column.choice.reason
    return column.choice.levels


def cells_of(found: Review, name: str) -> list[str]:
    """Return the cells of a column as they would be imported."""
    return list(found.preview.cells(column_of(found.preview, name).index))


def titles_of(found: Review) -> list[str]:
    """Return the titles of all causes."""
    return [cause.title for cause in found.causes]
