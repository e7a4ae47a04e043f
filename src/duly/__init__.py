"""Every job, duly done, and provably so: multi-tenant long-running work on PostgreSQL."""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from duly.remote import AsyncClient, Client

__all__ = [
    "Actor",
    "Adapter",
    "AsyncClient",
    "Call",
    "Cancel",
    "Category",
    "Client",
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


def __getattr__(name: str) -> Any:
    """The clients of the HTTP API need httpx, which not everybody has."""
    if name not in ("AsyncClient", "Client"):
        raise AttributeError(f"module 'duly' has no attribute {name!r}")
    try:
        from duly import remote
    except ModuleNotFoundError as error:
        raise ImportError(f"duly.{name} needs {error.name}: install duly[client]", name=error.name) from None
    return getattr(remote, name)
