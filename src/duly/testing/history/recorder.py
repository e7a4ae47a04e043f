"""Logs of clients, handlers and observers: one JSON line per record, shared by processes, fit for kill -9."""

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
    AuditSight,
    Cancellation,
    Effect,
    FeedRead,
    LeaseSight,
    Probe,
    Sight,
    StreamRead,
    Submission,
)

Record = Submission | Cancellation | StreamRead | FeedRead | Probe | Effect | Sight | LeaseSight | AuditSight
Question = TypeVar("Question", Submission, Cancellation)

_FIELDS: dict[str, tuple[str, Any]] = {
    kind.__name__: (field, kind)
    for field, kind in {
        "submissions": Submission,
        "cancellations": Cancellation,
        "streams": StreamRead,
        "feeds": FeedRead,
        "probes": Probe,
        "effects": Effect,
        "sights": Sight,
        "leases": LeaseSight,
        "audit_sights": AuditSight,
    }.items()
}
"""Where a history keeps a kind of record."""


class Recorder:
    """An append-only log. Each record is one write, so that lines of several processes never mix."""

    def __init__(self, path: Path | str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, record: Record) -> None:
        """Keep a record. When this returns, a kill of the process does not lose it."""
        kind = type(record).__name__
        line = {"kind": kind, "record": _adapter(kind).dump_python(record, mode="json")}
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def ask(self, question: Question) -> Question:
        """Keep a question before it is asked. Should nobody live to write its answer, that is unknown.

        Write what came of it as `replace(asked, answer=..., ...)`.
        """
        asked = replace(question, answer="unknown", asked=uuid.uuid4().hex)
        self.write(asked)
        return asked

    def close(self) -> None:
        """Nothing more will be written here."""
        os.close(self._file)


def load(paths: Iterable[Path | str]) -> list[Record]:
    """Every whole record of these logs, in their order; of a question only its last word."""
    found: dict[object, Record] = {}
    for path in paths:
        for number, line in enumerate(Path(path).read_bytes().splitlines(keepends=True)):
            record = _read(line)
            if record is not None:
                found[getattr(record, "asked", "") or (path, number)] = record
    return list(found.values())


def by_field(records: Iterable[Record]) -> dict[str, list[Any]]:
    """Records under the names by which a history knows them: `export(conn, **by_field(load(paths)))`."""
    sorted_out: dict[str, list[Any]] = defaultdict(list)
    for record in records:
        sorted_out[_FIELDS[type(record).__name__][0]].append(record)
    return dict(sorted_out)


def _read(line: bytes) -> Record | None:
    """A line that was torn by a kill is no record, nor is the one that was written behind a torn one."""
    if not line.endswith(b"\n"):
        return None
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return _adapter(said["kind"]).validate_python(said["record"])


@cache
def _adapter(kind: str) -> TypeAdapter[Record]:
    return TypeAdapter(_FIELDS[kind][1])
