"""The private file behind a draft: the rows of the upload, read once and written as plain JSON."""

import json
import os
from pathlib import Path
from uuid import UUID

from webapp.cohorts.tables.table import Table
from webapp.common.storage import array_path

DRAFTS = "drafts"


def draft_path(organisation_id: int, uuid: UUID) -> Path:
    """Return where the rows of a draft lie."""
    return array_path(organisation_id, DRAFTS, uuid, ".json")


def write_draft_table(path: Path, table: Table) -> None:
    """Write the rows, whole or not at all, readable by the server's account only."""
    part = path.with_suffix(".part")
    data = {
        "header": table.header,
        "rows": table.rows,
        "row_numbers": table.row_numbers,
        "file_format": table.file_format,
        "encoding": table.encoding,
        "delimiter": table.delimiter,
        "short_rows": table.short_rows,
    }
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def read_draft_table(path: Path) -> Table:
    """Read what :func:`write_draft_table` wrote."""
    with path.open(encoding="utf-8") as file:
        data = json.load(file)
    return Table(
        header=tuple(data["header"]),
        rows=tuple(tuple(row) for row in data["rows"]),
        row_numbers=tuple(data["row_numbers"]),
        file_format=data["file_format"],
        encoding=data["encoding"],
        delimiter=data["delimiter"],
        short_rows=tuple(data.get("short_rows", ())),  # drafts of before have none
    )
