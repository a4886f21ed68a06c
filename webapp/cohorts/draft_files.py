"""The private file behind a draft: the upload as it stands, read once and written encrypted."""

import json
from functools import lru_cache
from pathlib import Path
from uuid import UUID

from cryptography.fernet import Fernet

from webapp.cohorts.tables.layout import SheetLayout, find_layout
from webapp.cohorts.tables.source import Line, Sheet, Source
from webapp.cohorts.tables.table import Table, build_table
from webapp.files import store
from webapp.files.storage import array_path, keep_bytes

DRAFTS = "drafts"
_REMEMBERED = 6  # files a process keeps parsed; one of 2,500 rows takes about 20 MB


def draft_path(organisation_id: int, uuid: UUID) -> Path:
    """Return where the rows of a draft lie."""
    return array_path(organisation_id, DRAFTS, uuid, ".json")


def write_draft_source(path: Path, source: Source, key: str) -> None:
    """Write the file under a key of its own, whole or not at all, for the server's account only."""
    data = {
        "sheets": [
            {
                "name": sheet.name,
                "numbers": [line.number for line in sheet.lines],
                "cells": [line.cells for line in sheet.lines],
            }
            for sheet in source.sheets
        ],
        "file_format": source.file_format,
        "encoding": source.encoding,
        "delimiter": source.delimiter,
    }
    keep_bytes(path, Fernet(key).encrypt(json.dumps(data, ensure_ascii=False).encode()))


def read_draft_source(path: Path, key: str | None) -> Source:
    """Read what :func:`write_draft_source` wrote, or the plain table of a draft of before."""
    content = path.read_bytes()
    data = json.loads(Fernet(key).decrypt(content) if key else content)
    if "sheets" not in data:
        numbered = [(1, data["header"]), *zip(data["row_numbers"], data["rows"], strict=True)]
        data["sheets"] = [
            {"name": "", "numbers": [n for n, _ in numbered], "cells": [c for _, c in numbered]}
        ]
    same: dict[str, str] = {}  # cells say little that others do not
    sheets = tuple(
        Sheet(
            sheet["name"],
            tuple(
                Line(number, tuple(map(same.setdefault, cells, cells)))
                for number, cells in zip(sheet["numbers"], sheet["cells"], strict=True)
            ),
        )
        for sheet in data["sheets"]
    )
    return Source(sheets, data["file_format"], data["encoding"], data["delimiter"])


def draft_source(path: Path, key: str | None) -> Source:
    """Return the file behind a draft, parsed once in a process: it never changes."""
    return _source(path, store.get(path).stat().st_mtime_ns, key)


def draft_file_table(path: Path, key: str | None, layout: SheetLayout | None) -> Table:
    """Return the table of a draft under a layout, with what was worked out of it before."""
    return _table(path, store.get(path).stat().st_mtime_ns, key, layout)


@lru_cache(maxsize=_REMEMBERED)
def _source(path: Path, changed: int, key: str | None) -> Source:
    return read_draft_source(path, key)


@lru_cache(maxsize=_REMEMBERED)
def _table(path: Path, changed: int, key: str | None, layout: SheetLayout | None) -> Table:
    source = _source(path, changed, key)
    return build_table(source, layout or find_layout(source))
