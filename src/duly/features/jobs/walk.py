"""Going through a list of jobs, some at a time: what fits, and where to go on."""

from __future__ import annotations

from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER
from duly.features.jobs import store as listing
from duly.features.jobs.filter_store import NEWEST, Choice, Place
from duly.features.pagination import Count, capped_count
from duly.jobs import stale_jobs
from duly.jobs.application import App

_AT_ONCE = 1_000
_JUDGED = 200
_SPARSE = 300
_LOOKS = 10


async def look(
    app: App, choice: Choice, start: Place, size: int, *, looks: int | None = None
) -> tuple[list[Place], Place | None]:
    """Those that fit, one more than asked for at most; and where the look ended, if not at the end.

    With a filter that no index serves, so many are looked at and no more.
    """
    database = (await app.resources()).database
    found: list[Place] = []
    most = _JUDGED if choice.freshness else _AT_ONCE if choice.narrow else size + 1
    if choice.sparse:
        most = max(most, _SPARSE)
    at: Place | None = start
    session = database.engine() if choice.of_the_engine else database.tenant(choice.whose)
    async with session as conn:
        await conn.execute(PREFER_INDEX_ORDER)
        for _ in range(looks or _LOOKS):
            if at is None or len(found) > size:
                break
            places, at = await listing.look(conn, choice, at, most=most)
            found += await _fitting(conn, choice, places)
    return found[: size + 1], at


async def count(app: App, choice: Choice, most: int) -> Count:
    """How many there are; no more than so many are looked at."""
    found, more = await look(app, choice, NEWEST, most, looks=max(most // _AT_ONCE, 1))
    n = capped_count(len(found), most)
    return Count(count=n.count, at_least=n.at_least or more is not None)


async def _fitting(conn: Connection, choice: Choice, places: list[Place]) -> list[Place]:
    """Those of the jobs that the index found which are asked for, in their order."""
    if choice.narrow and places:
        fit = await listing.fit(conn, choice, places)
        places = [at for at in places if at.job_id in fit]
    if choice.freshness and places:
        judged = await stale_jobs.read_evidence(
            conn, [(at.org_id or choice.whose, at.job_id) for at in places]
        )
        so = {one.job_id for one in judged if one.assess().state is choice.freshness}
        places = [at for at in places if at.job_id in so]
    return places
