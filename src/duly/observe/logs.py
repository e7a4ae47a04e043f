"""How a process writes its log lines. What writes them is loaded when somebody does: it takes a moment."""

from __future__ import annotations

import logging
from dataclasses import dataclass

_in_use: Logs | None = None


@dataclass(frozen=True, slots=True)
class Logs:
    """How a process writes its lines; its isolated processes are told the same."""

    as_json: bool
    level: str
    filters: tuple[logging.Filter, ...] = ()
    """They see every record first: one of them knows the ids of the work at hand."""

    def write(self) -> None:
        """Have everything that is logged in this process written to stderr from now on."""
        global _in_use
        from duly.observe.lines import write

        write(self)
        _in_use = self


def in_use() -> Logs | None:
    """How this process writes its lines; None if whoever runs it has logging of their own."""
    return _in_use
