"""Writes of many rows of one model, each by one prepared statement."""

from collections.abc import Sequence

from django.db import connections, models, router
from django.db.backends.base.base import BaseDatabaseWrapper


def create_rows(rows: Sequence[models.Model]) -> None:
    """Create rows whose keys the database chooses; the keys are not read back.

    Django's ``bulk_create`` writes every value into a statement of its own for each 400 rows: 5,000
    pairs held SQLite's lock for twice as long.
    """
    if not rows:
        return
    connection = _connection_of(rows)
    name = connection.ops.quote_name
    fields = [field for field in rows[0]._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(name(str(field.column)) for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    statement = f"INSERT INTO {name(rows[0]._meta.db_table)} ({columns}) VALUES ({marks})"  # noqa: S608 - names of ours
    _execute(connection, statement, rows, fields, is_new=True)


def update_rows(rows: Sequence[models.Model], fields: Sequence[str]) -> None:
    """Write some fields of rows.

    Django's ``bulk_update`` builds an expression for every row and field: 10,000 students in their
    beds held SQLite's lock for five seconds, in which nobody else could decide.
    """
    if not rows:
        return
    meta = rows[0]._meta
    connection = _connection_of(rows)
    name = connection.ops.quote_name
    columns = {field.name: field for field in meta.concrete_fields}
    written = [columns[field] for field in fields]
    key = next(field for field in meta.concrete_fields if field.primary_key)
    sets = ", ".join(f"{name(str(field.column))} = %s" for field in written)
    statement = f"UPDATE {name(meta.db_table)} SET {sets} WHERE {name(str(key.column))} = %s"  # noqa: S608 - names of ours
    _execute(connection, statement, rows, [*written, key], is_new=False)


def _connection_of(rows: Sequence[models.Model]) -> BaseDatabaseWrapper:
    return connections[router.db_for_write(type(rows[0]))]


def _execute(
    connection: BaseDatabaseWrapper,
    statement: str,
    rows: Sequence[models.Model],
    fields: "Sequence[models.Field]",  # type: ignore[type-arg]  # of any types
    *,
    is_new: bool,
) -> None:
    """Execute a statement once for each row, with the values of the fields."""
    values = [
        [field.get_db_prep_save(field.pre_save(row, is_new), connection) for field in fields]
        for row in rows
    ]
    with connection.cursor() as cursor:
        cursor.executemany(statement, values)
