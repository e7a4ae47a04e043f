"""Tables as such: which of them are littered with dead rows, and cleaning them."""

from __future__ import annotations

from typing import Literal, get_args

from duly.store.session import Database
from duly.store.statements import statement

Busy = Literal["ready", "scheduled", "claims", "active_runs"]
"""Where rows come and go with every job."""


async def littered(database: Database, *, most: int) -> list[Busy]:
    """The busy tables that have more dead rows than this."""
    async with database.engine_statement() as conn:
        cursor = await conn.execute(
            statement("tables/littered"), {"busy": list(get_args(Busy)), "most": most}
        )
        return [row[0] for row in await cursor.fetchall()]


async def clean(database: Database, table: Busy) -> None:
    """Remove the dead rows, as far as nobody's old transaction can still see them."""
    await database.vacuum(table)
