"""The shortest way to see Duly at work: an embedded database, one job type, one job and its row."""

from __future__ import annotations

import asyncio
import uuid

from duly import Actor, Duly, context

app = Duly()
ORG = uuid.UUID("d0000000-0000-4000-8000-000000000001")


@app.job("report.build", category="planning")
async def build_report(region: str, year: int) -> dict[str, int]:
    """Count something."""
    return {region: year}


async def main() -> None:
    """Start, migrate, enqueue, look."""
    async with app:
        print(f"database  {app.place.url}")
        await app.create_org(ORG, "Demo GmbH")
        with context(org_id=ORG, actor=Actor.user("demo")):
            handle = await build_report.options(subject_id="region-DE").enqueue(region="DE", year=2026)
            job = await handle.status()
            print("enqueued " if handle.created else "the same job as before, found by its idempotency key")
            for name, value in job.model_dump(mode="json").items():
                print(f"  {name:<22} {value}")
            print("events")
            async for event in handle.events():
                print(f"  {event.event_seq} {event.event_type} by {event.actor_id}")
                break


if __name__ == "__main__":
    asyncio.run(main())
