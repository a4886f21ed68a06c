"""The private file behind a draft: the upload as it was sent, written once and encrypted."""

import json
from functools import cached_property, lru_cache
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


def keep_draft_file(path: Path, key: str, source: Source, table: Table) -> None:
    """Write the file under its own key, whole or not at all, for the server's account only.

    The page after an upload reads the file no second time, if this process serves it.
    """
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
    draft_file(path, key).hold(source, table)


def read_draft_source(path: Path, key: str | None) -> Source:
    """Read the output of :func:`keep_draft_file`, or the plain table of an older draft."""
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


class DraftFile:
    """The file behind a draft in memory: read once, as one table at a time."""

    def __init__(self, path: Path, key: str | None) -> None:
        self._path = path
        self._key = key
        self._table: tuple[SheetLayout | None, Table] | None = None

    @cached_property
    def source(self) -> Source:
        """The content of the file, with all its sheets."""
        return read_draft_source(self._path, self._key)

    def table(self, layout: SheetLayout | None) -> Table:
        """Return the table of the file under a layout; the likeliest layout if None."""
        held = self._table
        if held is None or held[0] != layout:
            table = build_table(self.source, layout or find_layout(self.source))
            held = self._table = (layout, table)
        return held[1]

    def hold(self, source: Source, table: Table) -> None:
        """Hold the content and the table that an upload was read as."""
        self.source = source
        self._table = (table.layout, table)


def draft_file(path: Path, key: str | None) -> DraftFile:
    """Return the file behind a draft; it stays in the memory of this process for a while."""
    return _file(path, store.get(path).stat().st_mtime_ns, key)


@lru_cache(maxsize=_REMEMBERED)
def _file(path: Path, changed: int, key: str | None) -> DraftFile:
    return DraftFile(path, key)
