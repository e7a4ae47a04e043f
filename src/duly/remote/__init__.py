"""The clients of the HTTP API: `Client`, and `AsyncClient` with the same verbs.

A verb is a flow (`verbs.py`, `watching.py`): a generator that asks for one step after the other and knows
nothing of sockets. `line.py` does the steps, waiting or awaiting. `asking.py` decides what is asked again,
`problems.py` which error an answer is. Stands alone: may import the model and httpx.
"""

from duly.remote.answers import (
    Artifact,
    Event,
    Freshness,
    JobStatus,
    LogLine,
    Result,
    Snapshot,
)
from duly.remote.async_client import AsyncClient, AsyncRemoteJob
from duly.remote.bodies import Choices, Filters, Submission
from duly.remote.client import Client, RemoteJob
from duly.remote.problems import BadAnswer, Unreachable

__all__ = [
    "Artifact",
    "AsyncClient",
    "AsyncRemoteJob",
    "BadAnswer",
    "Choices",
    "Client",
    "Event",
    "Filters",
    "Freshness",
    "JobStatus",
    "LogLine",
    "RemoteJob",
    "Result",
    "Snapshot",
    "Submission",
    "Unreachable",
]
