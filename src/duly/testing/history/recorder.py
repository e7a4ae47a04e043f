"""Logs of clients, handlers and observers: one JSON line per record, shared by processes, kill-safe."""

from __future__ import annotations

import json
import os
import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from duly.testing.history.records import (
    AuditObservation,
    Cancellation,
    Effect,
    FeedRead,
    IsolationProbe,
    JobObservation,
    LeaseObservation,
    RecordedSubmission,
    StreamRead,
)

Record = (
    RecordedSubmission
    | Cancellation
    | StreamRead
    | FeedRead
    | IsolationProbe
    | Effect
    | JobObservation
    | LeaseObservation
    | AuditObservation
)
Request = TypeVar("Request", RecordedSubmission, Cancellation)

_FIELDS: dict[str, tuple[str, Any]] = {
    kind.__name__: (field, kind)
    for field, kind in {
        "submissions": RecordedSubmission,
        "cancellations": Cancellation,
        "streams": StreamRead,
        "feeds": FeedRead,
        "probes": IsolationProbe,
        "effects": Effect,
        "observations": JobObservation,
        "leases": LeaseObservation,
        "audit_observations": AuditObservation,
    }.items()
}
"""The field of a history for each kind of record."""


class Recorder:
    """An append-only log of several processes: each record is one write, on a line of its own."""

    def __init__(self, path: Path | str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, record: Record) -> None:
        """Write a record. Once this returns, killing the process does not lose it."""
        kind = type(record).__name__
        line = {"kind": kind, "record": _adapter(kind).dump_python(record, mode="json")}
        # A kill can tear a write in the middle. The newline in front keeps the torn line of another process
        # from swallowing this one.
        os.write(self._file, b"\n" + json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def begin(self, request: Request) -> Request:
        """Write a request before it is sent. If the process dies before the answer, that stays unknown.

        Write the answer as `replace(begun, answer=..., ...)`.
        """
        begun = replace(request, answer="unknown", request=uuid.uuid4().hex)
        self.write(begun)
        return begun

    def close(self) -> None:
        """Close the log."""
        os.close(self._file)


def load(paths: Iterable[Path | str]) -> list[Record]:
    """Return every complete record of the logs, in order; of a request only its last state."""
    records: dict[object, Record] = {}
    for path in paths:
        for number, line in enumerate(Path(path).read_bytes().splitlines(keepends=True)):
            record = _read(line)
            if record is not None:
                records[getattr(record, "request", "") or (path, number)] = record
    return list(records.values())


def by_field(records: Iterable[Record]) -> dict[str, list[Any]]:
    """Group records by the fields of a history: `export(conn, **by_field(load(paths)))`."""
    fields: dict[str, list[Any]] = defaultdict(list)
    for record in records:
        fields[_FIELDS[type(record).__name__][0]].append(record)
    return dict(fields)


def _read(line: bytes) -> Record | None:
    """Return the record of a line; None if the line is empty or a kill tore it."""
    if not line.endswith(b"\n"):
        return None
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return _adapter(document["kind"]).validate_python(document["record"])


@cache
def _adapter(kind: str) -> TypeAdapter[Record]:
    return TypeAdapter(_FIELDS[kind][1])
