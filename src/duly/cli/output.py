"""Printing: tables and lines for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from duly.cli.exit_codes import ExitCode
from duly.jobs.handle import Handle

_WIDTH_OF_A_PIPE = 240
_LABELS = {"job_type": "type", "progress_percent": "%", "run_at": "run at"}
Columns = Mapping[str, str | Callable[[Any], Any]]
"""The title of each column, and its source: a field of the row, or a function of the row."""


@dataclass(frozen=True, slots=True)
class Output:
    """A result that reads differently for programs and for people, and the exit code."""

    data: Any
    """What --json prints."""
    text: str | Callable[[], None]
    """What people read; or a function that prints it."""
    code: ExitCode = ExitCode.OK


def columns(*names: str, **more: str | Callable[[Any], Any]) -> Columns:
    """Return columns: fields of the row, titled by their names, then columns with titles of their own."""
    titled = {title.replace("_", " "): source for title, source in more.items()}
    return {label(name): name for name in names} | titled


def label(field: str) -> str:
    """Return a field as people read it: `created_at` is "created", `max_running` is "max running"."""
    return _LABELS.get(field) or field.removesuffix("_at").removesuffix("_id").replace("_", " ")


def print_result(result: Any, columns: Columns | None = None, *, as_json: bool) -> None:
    """Print the result of a command; the docstring of `duly.cli.command` says how."""
    if isinstance(result, Output):
        _print_output(result, as_json=as_json)
    elif as_json and result is not None:
        print_json(result)
    elif isinstance(result, Handle):
        print(result.job_id)
    elif columns is not None:
        found = _fields(result)
        rows = next(value for value in found.values() if isinstance(value, list | tuple))
        print_table(rows, columns, after=found.get("after"))
    elif result is not None:
        print_facts(result)


def _print_output(output: Output, *, as_json: bool) -> None:
    if as_json:
        print_json(output.data)
    elif isinstance(output.text, str):
        print(_printable(output.text), flush=True)
    else:
        output.text()


def console() -> Console:
    """Return the console that people read; a pipe is wide enough for every table."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH_OF_A_PIPE)


def print_json(value: Any) -> None:
    """Print one line of JSON."""
    print(json.dumps(plain(value), ensure_ascii=False), flush=True)


def print_table(rows: Iterable[Any], columns: Columns, *, after: str | None = None) -> None:
    """Print a line per row, and how to get the next page."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in columns:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(_safe(_cell(row, source)) for source in columns.values()))
    screen = console()
    screen.print(table)
    if after is not None:
        screen.print(Text(f"next page: --after {after}"))


def print_facts(value: Any, names: Iterable[str] = ()) -> None:
    """Print a line per field; fields without a value are left out."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    found = _fields(value)
    for name in names or found:
        text = _text(found[name])
        if text:
            table.add_row(label(name), _safe(text))
    console().print(table)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text."""
    for line in lines:
        console().print(_safe(line))


def _safe(text: str) -> Text:
    return Text(_printable(text))


def _printable(text: str) -> str:
    """Return a text of a job without anything that a terminal would obey."""
    plain = text.replace("\t", "    ")
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in plain)


def _fields(value: Any) -> Mapping[str, Any]:
    match value:
        case Mapping():
            return value
        case BaseModel():
            described = type(value).model_fields.items()
            return {field.serialization_alias or name: getattr(value, name) for name, field in described}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: getattr(value, field.name) for field in fields(value)}
        case _:
            return dict(value._asdict())


def plain(value: Any) -> Any:
    """Return a value as JSON: times in UTC, durations in seconds."""
    match value:
        case BaseModel() | Mapping():
            return {str(name): plain(inner) for name, inner in _fields(value).items()}
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
        case list() | tuple() | set() | frozenset():
            return [plain(inner) for inner in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {name: plain(inner) for name, inner in _fields(value).items()}
        case _:
            return value


def _cell(row: Any, source: str | Callable[[Any], Any]) -> str:
    if callable(source):
        return _text(source(row))
    return _text(row[source] if isinstance(row, Mapping) else getattr(row, source))


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
