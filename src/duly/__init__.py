"""Every job, duly done, and provably so: multi-tenant long-running work on PostgreSQL."""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from duly.app import Duly
from duly.core import errors
from duly.core.job import Actor, JobSnapshot
from duly.core.outcome import Cancel, Fail, Retry, Snooze
from duly.core.policy import LifecyclePolicy, RetryPolicy
from duly.core.states import Outcome, Status
from duly.jobs.failure_callbacks import Failure
from duly.jobs.handle import Handle, SyncHandle
from duly.jobs.job import Job
from duly.jobs.registry import DomainRecord
from duly.jobs.request_context import context
from duly.settings import Settings
from duly.worker.context.context import Context
from duly.worker.context.sync_context import SyncContext

if TYPE_CHECKING:
    from duly.client import AsyncClient, Client

__all__ = [
    "Actor",
    "AsyncClient",
    "Cancel",
    "Client",
    "Context",
    "DomainRecord",
    "Duly",
    "Fail",
    "Failure",
    "Handle",
    "Job",
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
    "context",
    "errors",
]

_MOVED = {
    "Adapter": "duly.jobs.registry",
    "Call": "duly.jobs.job",
    "Category": "duly.core.policy",
    "DulyError": "duly.core.errors",
    "JobEvent": "duly.core.job",
    "Worker": "duly.worker.worker",
}
"""Public names of 0.9, which work for one more release."""


def __getattr__(name: str) -> Any:
    """Import the HTTP clients on first use, because httpx is optional; and names that have moved."""
    if name in _MOVED:
        warnings.warn(
            f"duly.{name} is deprecated: import it from {_MOVED[name]}", DeprecationWarning, stacklevel=2
        )
        return getattr(import_module(_MOVED[name]), name)
    if name not in ("AsyncClient", "Client"):
        raise AttributeError(f"module 'duly' has no attribute {name!r}")
    try:
        from duly import client
    except ModuleNotFoundError as error:
        raise ImportError(f"duly.{name} needs {error.name}: install duly[client]", name=error.name) from None
    return getattr(client, name)
