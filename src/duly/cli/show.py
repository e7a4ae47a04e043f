"""Printing: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from duly.client.handle import Handle

_WIDE = 240
Columns = Mapping[str, str | Callable[[Any], Any]]
"""What a column is called, and where it comes from: an attribute, or a function of the row."""


def console() -> Console:
    """Where people read; as wide as needed if nobody looks."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)


def print_json(value: Any) -> None:
    """One line of JSON."""
    print(json.dumps(plain(value), ensure_ascii=False), flush=True)


def print_table(rows: Iterable[Any], columns: Columns, *, after: str | None = None) -> None:
    """A row for each; and how to ask for more."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in columns:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(_safe(_cell(row, source)) for source in columns.values()))
    screen = console()
    screen.print(table)
    if after is not None:
        screen.print(Text(f"there is more: --after {after}"))


def print_facts(value: Any, names: Iterable[str]) -> None:
    """One thing, a line for each of its facts that is known."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name in names:
        said = _text(getattr(value, name))
        if said:
            table.add_row(name, _safe(said))
    console().print(table)


def print_lines(lines: Iterable[str]) -> None:
    """Sentences."""
    for line in lines:
        console().print(_safe(line))


def _safe(said: str) -> Text:
    """Words that come from jobs: neither markup nor anything that a terminal would obey."""
    plain = said.replace("\t", "    ")
    return Text("".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in plain))


def plain(value: Any) -> Any:
    """A value as JSON knows it: times in UTC, durations in seconds."""
    match value:
        case BaseModel():
            return {name: plain(getattr(value, name)) for name in type(value).model_fields}
        case Handle():
            return {"org_id": str(value.org_id), "job_id": str(value.job_id), "created": value.created}
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case Enum():
            return value.value
        case UUID():
            return str(value)
        case Mapping():
            return {str(name): plain(inner) for name, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(inner) for inner in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value


def _cell(row: Any, source: str | Callable[[Any], Any]) -> str:
    return _text(source(row) if callable(source) else getattr(row, source))


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
        case timedelta():
            return str(timedelta(seconds=round(value.total_seconds())))
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case list() | tuple():
            return ", ".join(map(_text, value))
        case Mapping():
            return json.dumps(plain(value), ensure_ascii=False) if value else ""
        case _:
            return str(value)
