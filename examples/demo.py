"""The shortest way to see Duly at work: an embedded database, a worker, one job with partial results."""

from __future__ import annotations

import asyncio
import uuid

from duly import Actor, Context, Duly, Handle, context

app = Duly()
ORG = uuid.UUID("d0000000-0000-4000-8000-000000000001")
REGIONS = {"north": 17, "east": 42, "south": 23, "west": 8}


@app.job("revenue.analyze", category="planning", allows_partial=True)
async def analyze(ctx: Context, year: int) -> dict[str, int]:
    """Analyze region by region. Each result is kept as soon as it is there."""
    async for chunk in ctx.chunks(REGIONS):
        async with chunk:
            chunk.result = {"region": chunk.item, "revenue": REGIONS[chunk.item] * year}
    found = await ctx.results()
    return {region: part["revenue"] for region, part in found.items()}


async def main() -> None:
    """Start, migrate, enqueue, work, look."""
    async with app:
        print(f"database  {app.place.url}")
        await app.create_org(ORG, "Demo GmbH")
        with context(org_id=ORG, actor=Actor.user("demo")):
            handle = await analyze.options(subject_id="revenue-2026").enqueue(year=2026)
            print("enqueued " if handle.created else "the same job as before, found by its idempotency key")
            async with app.worker(slots=4):
                await show(handle)


async def show(handle: Handle[dict[str, int]]) -> None:
    """Every event as it happens, then the job as it ended."""
    async for event in handle.events():
        percent = event.payload_json.get("progress_percent", "")
        print(f"  {event.event_seq} {event.event_type:<14} by {event.actor_id:<36} {percent}")
    job = await handle.status()
    print(f"job       {job.job_id}\npermalink {job.result_id}")
    print(f"ended     {job.status}, {job.outcome}, attempt {job.attempt}, {job.progress_percent:.0f} %")
    print(f"counts    {job.summary_counts}\nresult    {dict(sorted((await handle.result()).items()))}")


if __name__ == "__main__":
    asyncio.run(main())
