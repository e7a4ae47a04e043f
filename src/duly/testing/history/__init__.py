"""Check recorded histories of runs against the promises I1 to I19.

Clients, handlers and observers write logs (`Recorder`, `Observer`); `export` reads the tables when the run is
quiet; `check` examines every promise and counts the facts.
"""

from duly.testing.history.checker import CheckResult
from duly.testing.history.export import export, export_jobs, observe_jobs
from duly.testing.history.observer import Observer, watch
from duly.testing.history.promises import PROMISES, check
from duly.testing.history.recorder import Recorder, by_field, load
from duly.testing.history.records import (
    AuditObservation,
    Cancellation,
    Effect,
    FeedRead,
    History,
    IsolationProbe,
    JobObservation,
    LeaseObservation,
    PromiseViolation,
    RecordedSubmission,
    StreamRead,
)

__all__ = [
    "PROMISES",
    "AuditObservation",
    "Cancellation",
    "CheckResult",
    "Effect",
    "FeedRead",
    "History",
    "IsolationProbe",
    "JobObservation",
    "LeaseObservation",
    "Observer",
    "PromiseViolation",
    "RecordedSubmission",
    "Recorder",
    "StreamRead",
    "by_field",
    "check",
    "export",
    "export_jobs",
    "load",
    "observe_jobs",
    "watch",
]
