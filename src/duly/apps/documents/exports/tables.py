"""Rows as CSV and as JSON Lines."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FORMULA = re.compile(
    r"(?:^|(?<=[;\t\r\n]))(?=[=+\-@＝＋－＠])|^(?=[\t\r\n])"  # noqa: RUF001 - spreadsheets accept full-width ones
)
"""Where a spreadsheet may see a formula: at the start of a cell, and after a semicolon, tab or line end
within it, which some spreadsheets take for the end of the cell."""
_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


def to_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, bom: bool = False) -> bytes:
    """Return a table with a header row, as in RFC 4180; with `bom` Excel detects UTF-8."""
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(columns)
    table.writerows([safe_cell(row.get(column)) for column in columns] for row in rows)
    return f"{_BOM if bom else ''}{text.getvalue()}".encode()


def to_jsonl(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a line of JSON per row."""
    return "".join(
        json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=str) + "\n" for row in rows
    ).encode()


def safe_cell(value: Any) -> Any:
    """Return a cell that no spreadsheet evaluates: a quote precedes everything that looks like a formula."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return _FORMULA.sub("'", str(value))
