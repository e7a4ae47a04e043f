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
from duly.settings import Settings
from duly.wiring import Duly

__all__ = [
    "Actor",
    "Call",
    "Category",
    "Duly",
    "DulyError",
    "Handle",
    "Job",
    "JobEvent",
    "JobSnapshot",
    "Outcome",
    "RetryPolicy",
    "Settings",
    "Status",
    "SyncHandle",
    "context",
    "errors",
]
