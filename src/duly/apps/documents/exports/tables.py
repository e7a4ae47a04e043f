"""Rows as CSV and as lines of JSON."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FORMULA = re.compile(
    r"(?:^|(?<=[;\t\r\n]))(?=[=+\-@＝＋－＠])|^(?=[\t\r\n])"  # noqa: RUF001 - spreadsheets read the wide ones too
)
"""Where a spreadsheet may begin to compute: at the beginning of a value, and where another begins for
those that take a semicolon, a tab or the end of a line within it for its end."""
_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, bom: bool = False) -> bytes:
    """A table with a head, after RFC 4180: commas between values, quotes around those that need them.

    With `bom` Excel knows that it is UTF-8.
    """
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
    """A cell of which a spreadsheet computes nothing: what begins like a formula gets a quote before it."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return _FORMULA.sub("'", str(value))
