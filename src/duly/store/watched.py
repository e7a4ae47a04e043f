"""Cursors that let somebody watch each statement, by its name alone. Only made where somebody does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Self

from psycopg import AsyncCursor, Cursor
from psycopg.abc import Params

from duly.store.statements import Statement

Watch = Callable[[str], AbstractContextManager[object]]
"""Opened around a statement, and told its name."""
_VERB = re.compile(r"\s*([a-zA-Z]{1,20})\b")


def name_of(query: Any) -> str:
    """The name of one of ours; of anybody's the verb, and nothing else: a text may have values in it."""
    if isinstance(query, Statement):
        return query.name
    verb = _VERB.match(query) if isinstance(query, str) else None
    return verb[1].lower() if verb else "statement"


def watched(watch: Watch) -> type[AsyncCursor[Any]]:
    """The cursors of connections whose statements are watched."""

    class Watched(AsyncCursor[Any]):
        __slots__ = ()

        async def execute(self, query: Any, params: Params | None = None, **how: Any) -> Self:
            with watch(name_of(query)):
                return await super().execute(query, params, **how)

        async def executemany(self, query: Any, params_seq: Iterable[Params], **how: Any) -> None:
            with watch(name_of(query)):
                await super().executemany(query, params_seq, **how)

    return Watched


def watched_plainly(watch: Watch) -> type[Cursor[Any]]:
    """The same for connections that are not async."""

    class Watched(Cursor[Any]):
        __slots__ = ()

        def execute(self, query: Any, params: Params | None = None, **how: Any) -> Self:
            with watch(name_of(query)):
                return super().execute(query, params, **how)

        def executemany(self, query: Any, params_seq: Iterable[Params], **how: Any) -> None:
            with watch(name_of(query)):
                super().executemany(query, params_seq, **how)

    return Watched
