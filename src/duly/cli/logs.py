"""What workers write on stderr: lines for people, or JSON lines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

_IDS = ("request_id", "correlation_id", "job_id", "job_type", "org_id", "project_id")
"""The only fields of a record that are written beside its message."""


def write_logs(*, as_json: bool, level: str) -> None:
    """Have everything that is logged written to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else Lines("%(asctime)s %(levelname)-8s %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class Lines(logging.Formatter):
    """For people: the message, and which job it is about."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the traceback if there is one."""
        job = getattr(record, "job_id", None)
        return super().format(record) + (f" [job {job}]" if job else "")


class JsonLines(logging.Formatter):
    """For programs: one object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
            **{name: value for name in _IDS if (value := getattr(record, name, None)) is not None},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
