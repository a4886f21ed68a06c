"""The private file behind a draft: the upload as it was sent, written once and encrypted."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

from cryptography.fernet import Fernet

from engine.tabular.layout import SheetLayout, find_layout
from engine.tabular.source import Line, Sheet, Source
from engine.tabular.table import Table, build_table
from webapp.files import store
from webapp.files.storage import array_path, keep_bytes

DRAFTS = "drafts"
_REMEMBERED = 6  # parsed files in a process; one of 2,500 rows takes about 20 MB


def draft_path(organisation_id: int, uuid: UUID) -> Path:
    """Return the path of a draft's file."""
    return array_path(organisation_id, DRAFTS, uuid, ".json")


def write_draft_source(path: Path, source: Source, key: str) -> None:
    """Write the file under its own key, whole or not at all, for the server's account only."""
    data = {
        "sheets": [
            {
                "name": sheet.name,
                "numbers": [line.number for line in sheet.lines],
                "cells": [line.cells for line in sheet.lines],
                "hidden_rows": [line.number for line in sheet.lines if line.is_hidden],
                "hidden_columns": sheet.hidden_columns,
                "merges": sheet.merges,
            }
            for sheet in source.sheets
        ],
        "file_format": source.file_format,
        "encoding": source.encoding,
        "delimiter": source.delimiter,
    }
    keep_bytes(path, Fernet(key).encrypt(json.dumps(data, ensure_ascii=False).encode()))


def read_draft_source(path: Path, key: str | None) -> Source:
    """Read the output of :func:`write_draft_source`, or the plain table of an older draft."""
    content = path.read_bytes()
    data = json.loads(Fernet(key).decrypt(content) if key else content)
    if "sheets" not in data:
        numbered = [(1, data["header"]), *zip(data["row_numbers"], data["rows"], strict=True)]
        data["sheets"] = [
            {"name": "", "numbers": [n for n, _ in numbered], "cells": [c for _, c in numbered]}
        ]
    same: dict[str, str] = {}  # equal cells share one string
    sheets = tuple(_sheet(sheet, same) for sheet in data["sheets"])
    return Source(sheets, data["file_format"], data["encoding"], data["delimiter"])


def _sheet(data: dict[str, Any], same: dict[str, str]) -> Sheet:
    hidden = frozenset(data.get("hidden_rows", ()))
    lines = tuple(
        Line(number, tuple(map(same.setdefault, cells, cells)), number in hidden)
        for number, cells in zip(data["numbers"], data["cells"], strict=True)
    )
    merges = tuple((row, first, last) for row, first, last in data.get("merges", ()))
    return Sheet(data["name"], lines, tuple(data.get("hidden_columns", ())), merges)


def draft_source(path: Path, key: str | None) -> Source:
    """Return the file behind a draft, parsed once in a process, since it never changes."""
    return _source(path, store.get(path).stat().st_mtime_ns, key)


def draft_file_table(path: Path, key: str | None, layout: SheetLayout | None) -> Table:
    """Return the table of a draft under a layout, from the cache if it was read before."""
    return _table(path, store.get(path).stat().st_mtime_ns, key, layout)


@lru_cache(maxsize=_REMEMBERED)
def _source(path: Path, changed: int, key: str | None) -> Source:
    return read_draft_source(path, key)


@lru_cache(maxsize=_REMEMBERED)
def _table(path: Path, changed: int, key: str | None, layout: SheetLayout | None) -> Table:
    source = _source(path, changed, key)
    return build_table(source, layout or find_layout(source))
