"""What a client did, line by line, written before and after: a line that was written survives a kill."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Logbook:
    """One process's log. A question and its answer share a number."""

    def __init__(self, path: Path, who: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._who = who
        self._last = 0

    def write(self, op: str, **values: Any) -> None:
        """Add a line."""
        line = json.dumps({"t": round(time.time(), 4), "who": self._who, "op": op, **values}, default=str)
        os.write(self._file, line.encode() + b"\n")

    def ask(self, op: str, **values: Any) -> int:
        """Add a question; the number for its answer."""
        self._last += 1
        self.write(op, n=self._last, **values)
        return self._last

    def answer(self, number: int, answer: str, **values: Any) -> None:
        """Add what came of it."""
        self.write("answer", n=number, answer=answer, **values)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole line; the last one may have been cut off by a kill."""
    if not path.exists():
        return
    with path.open() as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def answered(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Each question with its answer, or with None if nobody lived to write it."""
    asked: dict[tuple[str, int], dict[str, Any]] = {}
    for line in lines(path):
        if line["op"] == "answer":
            question = asked.pop((line["who"], line["n"]), None)
            if question is not None:
                yield question, line
        elif "n" in line:
            asked[line["who"], line["n"]] = line
    for question in asked.values():
        yield question, None
