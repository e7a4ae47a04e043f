"""The ids of the work at hand on every line that is logged there, whoever logs it."""

from __future__ import annotations

import logging
from typing import Any

from duly.client.context import surroundings

_OF_A_JOB = ("job_type", "attempt")


class LogIds(logging.Filter):
    """Puts the ids of the request or the job on each record: `handler.addFilter(LogIds())`.

    What a line says itself, as by `extra=`, stays.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """All pass."""
        said = record.__dict__
        # A line about another job has that one's ids.
        left_out = _OF_A_JOB if said.get("job_id") else ()
        for name, value in log_ids().items():
            if said.get(name) is None and name not in left_out:
                said[name] = value
        return True


def log_ids() -> dict[str, Any]:
    """What is known here and now; nothing outside of requests and jobs."""
    here = surroundings()
    ids: dict[str, Any] = {
        "request_id": here.request_id,
        "correlation_id": here.correlation_id or here.request_id,
        "job_id": here.parent_id and str(here.parent_id),
        "job_type": here.job_type,
        "org_id": here.org_id and str(here.org_id),
        "project_id": here.project_id and str(here.project_id),
        "attempt": here.attempt,
        # Of version, trace and span the second: where there are traces, the line is found from there.
        "trace_id": here.traceparent and here.traceparent.split("-")[1],
    }
    return {name: value for name, value in ids.items() if value is not None}
