"""Reports, imports and exports: what takes its time, shows how far it is, and keeps what it has."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

from duly import Context, Duly, SyncContext

from .billing import SOON

LONG = "report.regional"
"""Always one of these is at work, with some seconds to go."""


def declare(app: Duly) -> None:
    """The job types that take long."""

    @app.job(LONG, category="planning", retry=SOON)
    async def regional(
        ctx: Context, quarter: str, regions: list[str], seconds: float = 2.0
    ) -> dict[str, Any]:
        """A region is a partial result: whoever takes over goes on with those that are missing."""
        async for chunk in ctx.chunks(regions):
            async with chunk:
                ctx.log.info("computing %s of %s", chunk.item, quarter)
                await asyncio.sleep(seconds * random.uniform(0.8, 1.2))
                orders = random.randint(120, 4_800)
                chunk.result = {
                    "region": chunk.item,
                    "orders": orders,
                    "revenue": round(orders * random.uniform(18, 61), 2),
                }
        return {"quarter": quarter, "regions": await ctx.results()}

    @app.job("forecast.demand", category="planning", retry=SOON)
    async def forecast(ctx: Context, product: str, weeks: int) -> dict[str, float]:
        for week in range(weeks):
            ctx.check_canceled()
            ctx.progress(100 * week / weeks, f"week {week + 1} of {weeks}")
            await asyncio.sleep(0.4)
        return {"units": float(random.randint(40, 900))}

    _in_and_out(app)


def _in_and_out(app: Duly) -> None:
    @app.job("export.customers", category="transfer", retry=SOON)
    async def export(ctx: Context, format: str, rows: int) -> dict[str, Any]:  # noqa: A002 - as the payload has it
        for part in range(8):
            ctx.check_canceled()
            ctx.progress(12 * part, f"{rows * part // 8:,} rows")
            await asyncio.sleep(random.uniform(0.2, 0.6))
        lines = "number;name;city\n" + "".join(f"{n};Customer {n};Kiel\n" for n in range(1, 21))
        file = await ctx.artifact(f"customers.{format}", lines.encode(), content_type="text/csv")
        ctx.count(exported=rows)
        return {"file": file.name, "rows": rows}

    @app.job("catalog.import", category="transfer", retry=SOON, allows_partial=True)
    async def bring_in(ctx: Context, supplier: str, sheets: list[str]) -> dict[str, int]:
        """One bad sheet does not spoil the others."""
        async for chunk in ctx.chunks(sheets):
            async with chunk:
                await asyncio.sleep(random.uniform(0.1, 0.5))
                if chunk.item.endswith("old") and random.random() < 0.8:
                    raise ValueError("column price: 12,5o is no number")
                chunk.result = {"sheet": chunk.item, "products": random.randint(10, 400)}
        kept = await ctx.results()
        return {"sheets": len(kept), "products": sum(one["products"] for one in kept.values())}

    @app.job("thumbnail.render", retry=SOON)
    def render(ctx: SyncContext, picture: str, width: int) -> str:
        """On a thread, as most code of the world."""
        time.sleep(random.uniform(0.05, 0.3))
        ctx.progress(60, "scaled")
        return f"{picture}@{width}.webp"
