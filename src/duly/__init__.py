"""Every job, duly done, and provably so: multi-tenant long-running work on PostgreSQL."""

from duly.client.adapter import Adapter, DomainRecord
from duly.client.bridge import Failure
from duly.client.context import context
from duly.client.handle import Handle
from duly.client.job import Call, Job
from duly.client.sync import SyncHandle
from duly.model import errors
from duly.model.errors import DulyError
from duly.model.job import Actor, JobEvent, JobSnapshot
from duly.model.policy import Category, LifecyclePolicy, RetryPolicy
from duly.model.states import Outcome, Status
from duly.model.verdict import Cancel, Fail, Retry, Snooze
from duly.settings import Settings
from duly.wiring import Duly
from duly.worker.context import Context
from duly.worker.sync_context import SyncContext
from duly.worker.worker import Worker

__all__ = [
    "Actor",
    "Adapter",
    "Call",
    "Cancel",
    "Category",
    "Context",
    "DomainRecord",
    "Duly",
    "DulyError",
    "Fail",
    "Failure",
    "Handle",
    "Job",
    "JobEvent",
    "JobSnapshot",
    "LifecyclePolicy",
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
