"""Cursors that trace each statement by its name; used only where tracing is on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Self

from psycopg import AsyncCursor, Cursor
from psycopg.abc import Params

from duly.db.statements import Statement

StatementTracer = Callable[[str], AbstractContextManager[object]]
"""Returns the context manager that is entered around a statement of that name."""
_VERB = re.compile(r"\s*([a-zA-Z]{1,20})\b")


def statement_name(query: Any) -> str:
    """Return the name of a statement of ours, or the verb of any other: its text may contain values."""
    if isinstance(query, Statement):
        return query.name
    verb = _VERB.match(query) if isinstance(query, str) else None
    return verb[1].lower() if verb else "statement"


def traced_cursor(tracer: StatementTracer) -> type[AsyncCursor[Any]]:
    """Return the class of cursors that trace their statements."""

    class TracedCursor(AsyncCursor[Any]):
        __slots__ = ()

        async def execute(self, query: Any, params: Params | None = None, **options: Any) -> Self:
            with tracer(statement_name(query)):
                return await super().execute(query, params, **options)

        async def executemany(self, query: Any, params_seq: Iterable[Params], **options: Any) -> None:
            with tracer(statement_name(query)):
                await super().executemany(query, params_seq, **options)

    return TracedCursor


def traced_sync_cursor(tracer: StatementTracer) -> type[Cursor[Any]]:
    """Return the class of cursors that trace their statements, for synchronous connections."""

    class TracedSyncCursor(Cursor[Any]):
        __slots__ = ()

        def execute(self, query: Any, params: Params | None = None, **options: Any) -> Self:
            with tracer(statement_name(query)):
                return super().execute(query, params, **options)

        def executemany(self, query: Any, params_seq: Iterable[Params], **options: Any) -> None:
            with tracer(statement_name(query)):
                super().executemany(query, params_seq, **options)

    return TracedSyncCursor
