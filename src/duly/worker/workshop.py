"""What contexts work with: the same in the worker and in an isolated process."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from duly.blobs import BlobRef, BlobStore
from duly.client.app import App
from duly.model.errors import ContractError
from duly.store.session import Database
from duly.worker.progress import ProgressKeeper

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
    url: str
    """For handlers that are not async: they get connections of their own."""
    inline_max: int
    result_max: int

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
