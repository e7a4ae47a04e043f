"""The log of a client, written before and after each request: written lines survive a kill."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Logbook:
    """The log of one process. A request and its answer share a number."""

    def __init__(self, path: Path, name: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._name = name
        self._last = 0

    def write(self, op: str, **values: Any) -> None:
        """Write a line."""
        line = json.dumps({"t": round(time.time(), 4), "who": self._name, "op": op, **values}, default=str)
        os.write(self._file, line.encode() + b"\n")

    def ask(self, op: str, **values: Any) -> int:
        """Write a request; return the number for its answer."""
        self._last += 1
        self.write(op, n=self._last, **values)
        return self._last

    def answer(self, number: int, answer: str, **values: Any) -> None:
        """Write an answer."""
        self.write("answer", n=number, answer=answer, **values)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield every whole line; a kill may have truncated the last one."""
    if not path.exists():
        return
    with path.open() as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def answered(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Yield each request with its answer, or None if the client died first."""
    unanswered: dict[tuple[str, int], dict[str, Any]] = {}
    for line in lines(path):
        if line["op"] == "answer":
            question = unanswered.pop((line["who"], line["n"]), None)
            if question is not None:
                yield question, line
        elif "n" in line:
            unanswered[line["who"], line["n"]] = line
    for question in unanswered.values():
        yield question, None
