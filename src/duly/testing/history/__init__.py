"""Histories of what was asked, done and seen; and the promises that must hold of every one of them.

Clients, handlers and observers keep logs (`Recorder`, `Observer`); `export` reads the tables when all is
quiet; `check` examines the promises I1 to I19 and says of each how many facts it saw.
"""

from duly.testing.history.export import export, export_jobs, look_at
from duly.testing.history.observe import Observer, watch
from duly.testing.history.promises import PROMISES, check
from duly.testing.history.recorder import Recorder, by_field, load
from duly.testing.history.records import (
    AuditSight,
    Cancellation,
    Effect,
    FeedRead,
    History,
    LeaseSight,
    Probe,
    Sight,
    StreamRead,
    Submission,
    Violation,
)
from duly.testing.history.verdict import Verdict

__all__ = [
    "PROMISES",
    "AuditSight",
    "Cancellation",
    "Effect",
    "FeedRead",
    "History",
    "LeaseSight",
    "Observer",
    "Probe",
    "Recorder",
    "Sight",
    "StreamRead",
    "Submission",
    "Verdict",
    "Violation",
    "by_field",
    "check",
    "export",
    "export_jobs",
    "load",
    "look_at",
    "watch",
]
