"""Rows as CSV and as lines of JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # noqa: RUF001 - spreadsheets read the wide ones too
_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, bom: bool = False) -> bytes:
    """A table with a head; with `bom` Excel knows that it is UTF-8."""
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(columns)
    table.writerows([safe(row.get(column)) for column in columns] for row in rows)
    return f"{_BOM if bom else ''}{text.getvalue()}".encode()


def as_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """A line of JSON each."""
    return "".join(
        json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=str) + "\n" for row in rows
    ).encode()


def safe(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: what begins like one gets a quote before it."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False, default=str)
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
