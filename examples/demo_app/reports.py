"""Reports, imports and exports: long jobs with progress and partial results."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

from duly import Context, Duly, SyncContext

from .billing import SOON

LONG = "report.regional"
"""There is always one of these running, with some seconds to go."""


def declare(app: Duly) -> None:
    """Declare the long job types."""

    @app.job(LONG, category="planning", retry=SOON)
    async def regional(
        ctx: Context, quarter: str, regions: list[str], seconds: float = 2.0
    ) -> dict[str, Any]:
        """Compute one region at a time as a partial result; a takeover resumes with the missing ones."""
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

    _declare_transfers(app)


def _declare_transfers(app: Duly) -> None:
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
    async def import_catalog(ctx: Context, supplier: str, sheets: list[str]) -> dict[str, int]:
        """Import sheets; one bad sheet does not fail the others."""
        async for chunk in ctx.chunks(sheets):
            async with chunk:
                await asyncio.sleep(random.uniform(0.1, 0.5))
                if chunk.item.endswith("old") and random.random() < 0.8:
                    raise ValueError("column price: 12,5o is no number")
                chunk.result = {"sheet": chunk.item, "products": random.randint(10, 400)}
        results = await ctx.results()
        return {"sheets": len(results), "products": sum(one["products"] for one in results.values())}

    @app.job("thumbnail.render", retry=SOON)
    def render(ctx: SyncContext, picture: str, width: int) -> str:
        """Run on a thread, as most existing code does."""
        time.sleep(random.uniform(0.05, 0.3))
        ctx.progress(60, "scaled")
        return f"{picture}@{width}.webp"
