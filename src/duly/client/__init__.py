"""Clients of the HTTP API: `Client`, and `AsyncClient` with the same methods.

An operation (`operations.py`, `watching.py`) is a generator that yields the steps it needs and knows nothing
of sockets. `transport.py` runs the steps, blocking or async. `retries.py` decides which requests are sent
again, `problems.py` turns responses into errors. The package needs `duly.core` and httpx only.
"""

import warnings
from typing import Any

from duly.client.async_client import AsyncClient, AsyncRemoteJob
from duly.client.client import Client, RemoteJob
from duly.client.problems import InvalidResponse, ServiceUnreachable
from duly.client.requests import JobFilters, JobSubmission, SubmitOptions
from duly.client.responses import (
    JobStatus,
    RemoteArtifact,
    RemoteEvent,
    RemoteFreshness,
    RemoteLogLine,
    RemoteResult,
    RemoteSnapshot,
)

__all__ = [
    "AsyncClient",
    "AsyncRemoteJob",
    "Client",
    "InvalidResponse",
    "JobFilters",
    "JobStatus",
    "JobSubmission",
    "RemoteArtifact",
    "RemoteEvent",
    "RemoteFreshness",
    "RemoteJob",
    "RemoteLogLine",
    "RemoteResult",
    "RemoteSnapshot",
    "ServiceUnreachable",
    "SubmitOptions",
]

_OLD_NAMES: dict[str, Any] = {
    "Artifact": RemoteArtifact,
    "BadAnswer": InvalidResponse,
    "Choices": SubmitOptions,
    "Event": RemoteEvent,
    "Filters": JobFilters,
    "Freshness": RemoteFreshness,
    "LogLine": RemoteLogLine,
    "Result": RemoteResult,
    "Snapshot": RemoteSnapshot,
    "Submission": JobSubmission,
    "Unreachable": ServiceUnreachable,
}


def __getattr__(name: str) -> Any:
    """Return a class by its name of version 0.9."""
    if name not in _OLD_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = _OLD_NAMES[name]
    warnings.warn(f"duly.client.{name} is now duly.client.{new.__name__}", DeprecationWarning, stacklevel=2)
    return new
