"""What contexts work with: the same in the worker and in an isolated process."""

from __future__ import annotations

import json
import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from duly.blobs import BlobRef, BlobStore
from duly.client.app import App
from duly.model.errors import ContractError
from duly.store.session import Database
from duly.store.watched import Watch
from duly.worker.job_log import Lines
from duly.worker.progress import ProgressKeeper

if TYPE_CHECKING:
    from duly.observe.traces import Traces

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True)
class Workshop:
    """The tools of every run."""

    app: App
    database: Database
    """The engine's own: fenced writes never wait for handlers that hold connections."""
    sessions: Database
    """Where handlers get theirs."""
    blobs: BlobStore
    keeper: ProgressKeeper
    lines: Lines
    """Where `ctx.log` has its lines kept."""
    url: str
    """For handlers that are not async: they get connections of their own."""
    inline_max: int
    result_max: int
    traces: Traces | None = None
    """Where spans are made, if they are wanted."""

    @property
    def watch(self) -> Watch | None:
        """Who watches the statements of connections that handlers have to themselves."""
        return None if self.traces is None else self.traces.statement

    def span(self, name: str, number: int | None = None) -> AbstractContextManager[object]:
        """Around a part of an attempt, and its number if there are many."""
        if self.traces is None:
            return nullcontext()
        return self.traces.part(name, {} if number is None else {f"duly.{name}": number})

    async def stored(self, org_id: UUID, value: Any) -> tuple[Any, str | None]:
        """A JSON value as it goes into a row: itself if it is small, else the reference of its blob."""
        if value is None:
            return None, None
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
        except (ValueError, TypeError, RecursionError) as error:
            raise ContractError(f"not JSON: {error}", field="result", fix="return plain values") from None
        if len(text) > self.result_max:
            raise ContractError(
                f"{len(text)} bytes are more than {self.result_max}",
                field="result",
                fix="store it with ctx.artifact, and return what it is called",
            )
        if _NUL.search(text):
            raise ContractError("a NUL character", field="result", fix="remove it: PostgreSQL stores none")
        if len(text) <= self.inline_max:
            return value, None
        return None, str(await self.blobs.put(org_id, text))

    async def loaded(self, org_id: UUID, value: Any, reference: str | None) -> Any:
        """A stored value, wherever it lies."""
        if reference is None:
            return value
        return json.loads(await self.blobs.get(BlobRef.parse(reference), org_id=org_id))
