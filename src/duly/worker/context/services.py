"""The services behind the context of a handler: the same in the worker and in an isolated process."""

from __future__ import annotations

import json
import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from duly.blobs import BlobRef, BlobStore
from duly.core.errors import ContractError
from duly.db.database import Database
from duly.db.traced_cursor import StatementTracer
from duly.jobs.application import App
from duly.worker.context.progress import ProgressWriter
from duly.worker.job_log import JobLogSink

if TYPE_CHECKING:
    from duly.observability.traces import Traces

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True)
class HandlerServices:
    """What the contexts of all runs share."""

    app: App
    database: Database
    """The engine's own pool: fenced writes never wait for handlers that hold connections."""
    sessions: Database
    """The pool for the sessions of handlers."""
    blobs: BlobStore
    progress: ProgressWriter
    job_log: JobLogSink
    """Stores the lines of `ctx.log`."""
    url: str
    """For sync handlers, which get connections of their own."""
    inline_max: int
    result_max: int
    traces: Traces | None = None
    """Creates trace spans, if tracing is on."""

    @property
    def watch(self) -> StatementTracer | None:
        """The statement tracer of connections that belong to one handler."""
        return None if self.traces is None else self.traces.statement

    def span(self, name: str, number: int | None = None) -> AbstractContextManager[object]:
        """Return a span around a part of the attempt."""
        if self.traces is None:
            return nullcontext()
        return self.traces.child(name, {} if number is None else {f"duly.{name}": number})

    async def store_value(self, org_id: UUID, value: Any) -> tuple[Any, str | None]:
        """Return a JSON value as a row stores it: itself if small, else None and a blob reference."""
        if value is None:
            return None, None
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
        except (ValueError, TypeError, RecursionError) as error:
            raise ContractError(
                f"not JSON: {error}", field="result", fix="return plain JSON values"
            ) from None
        if len(text) > self.result_max:
            raise ContractError(
                f"{len(text)} bytes exceed the limit of {self.result_max}",
                field="result",
                fix="store it with ctx.artifact and return its name",
            )
        if _NUL.search(text):
            raise ContractError(
                "the value contains a NUL character",
                field="result",
                fix="remove it: PostgreSQL cannot store it",
            )
        if len(text) <= self.inline_max:
            return value, None
        return None, str(await self.blobs.put(org_id, text))

    async def load_value(self, org_id: UUID, value: Any, reference: str | None) -> Any:
        """Return a stored value from its row or its blob."""
        if reference is None:
            return value
        return json.loads(await self.blobs.get(BlobRef.parse(reference), org_id=org_id))
