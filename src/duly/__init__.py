"""Every job, duly done, and provably so: multi-tenant long-running work on PostgreSQL."""

from duly.client.context import context
from duly.client.handle import Handle
from duly.client.job import Call, Job
from duly.client.sync import SyncHandle
from duly.model import errors
from duly.model.errors import DulyError
from duly.model.job import Actor, JobEvent, JobSnapshot
from duly.model.policy import Category, RetryPolicy
from duly.model.states import Outcome, Status
from duly.model.verdict import Cancel, Fail, Retry, Snooze
from duly.settings import Settings
from duly.wiring import Duly
from duly.worker.context import Context
from duly.worker.sync_context import SyncContext
from duly.worker.worker import Worker

__all__ = [
    "Actor",
    "Call",
    "Cancel",
    "Category",
    "Context",
    "Duly",
    "DulyError",
    "Fail",
    "Handle",
    "Job",
    "JobEvent",
    "JobSnapshot",
    "Outcome",
    "Retry",
    "RetryPolicy",
    "Settings",
    "Snooze",
    "Status",
    "SyncContext",
    "SyncHandle",
    "Worker",
    "context",
    "errors",
]
