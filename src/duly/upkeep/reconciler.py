"""Reconciliation: jobs that cannot be believed any more are ended, with the evidence on record.

Every sweep is bounded and goes on where the last one ended. Several may run at once: who comes second finds
the fence shut, and writes nothing. One job that cannot be put right stops no other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import psycopg

from duly.client.app import App
from duly.model.decide import decide
from duly.model.errors import DulyError
from duly.model.outcome import Overruled
from duly.model.policy import LifecyclePolicy, stored_policy
from duly.observe.fields import ids_of
from duly.store import suspects
from duly.store.pool import Connection
from duly.store.session import retrying
from duly.store.suspects import Found, Part, Step, Suspect
from duly.upkeep.heal import overrule
from duly.upkeep.judge import Finding, judge

log = logging.getLogger("duly.upkeep")
_AT_ONCE = 200
_PARTS = 1_000
_STEPS = 2_000


class Reconciler:
    """The chore that finds what nobody else will put right."""

    name = "reconciler"

    def __init__(self, app: App, every: timedelta = timedelta(seconds=10)) -> None:
        self._app = app
        self._every = every
        self._part = Part()
        self._step = Step()

    async def once(self) -> timedelta:
        """One sweep."""
        await self.sweep()
        return self._every

    async def sweep(self, *, dry_run: bool = False) -> list[Finding]:
        """Look, judge and heal; with `dry_run` only look and judge."""
        findings = [await self._treat(one, dry_run=dry_run) for one in await retrying(self._look)]
        return [finding for finding in findings if finding is not None]

    async def go_around(self, *, dry_run: bool = False) -> list[Finding]:
        """Sweep until everything was looked at once, from the beginning."""
        self._part, self._step = Part(), Step()
        found: dict[object, Finding] = {}
        parts_done = steps_done = False
        while not (parts_done and steps_done):
            found |= {(f.job_id, f.record.kind): f for f in await self.sweep(dry_run=dry_run)}
            parts_done |= self._part == Part()
            steps_done |= self._step == Step()
        return list(found.values())

    async def _look(self) -> list[Suspect]:
        async with (await self._app.ground()).database.engine_session() as conn:
            found = [*await self._waiting(conn), *await self._held(conn), *await self._walk(conn)]
            return await suspects.look(conn, list(dict.fromkeys(found)))

    async def _waiting(self, conn: Connection) -> Found:
        least = min(policy.queued_stale_after for policy in self._policies())
        found, end = await suspects.waiting(conn, self._part, at_least=least, steps=_PARTS, limit=_AT_ONCE)
        self._part = end or Part()
        return [*found, *await suspects.overdue(conn, at_least=least, limit=_AT_ONCE)]

    async def _held(self, conn: Connection) -> Found:
        least = min(policy.running_stale_after for policy in self._policies())
        return await suspects.held(conn, at_least=least, limit=_AT_ONCE)

    async def _walk(self, conn: Connection) -> Found:
        found, end = await suspects.walk(conn, self._step, steps=_STEPS)
        self._step = end or Step()
        return found

    def _policies(self) -> Iterable[LifecyclePolicy]:
        """Those known here: nothing younger than the strictest of them needs a look."""
        yield LifecyclePolicy()
        yield from (job.policy.lifecycle for job in self._app.registry)

    async def _treat(self, suspect: Suspect, *, dry_run: bool) -> Finding | None:
        record = judge(suspect)
        if record is None:
            return None
        to = decide(suspect.hold, Overruled(record), stored_policy(suspect.policy).retry, record.at, 0.0)
        finding = Finding(suspect.org_id, suspect.job_id, suspect.job_type, suspect.status, to.status, record)
        if dry_run:
            return finding
        try:
            if not await overrule(self._app, suspect, record):
                return None  # it has moved on, or another was faster
        except (psycopg.Error, DulyError) as error:
            said = "job %s could not be put right, trying again: %s"
            log.warning(said, suspect.job_id, error, extra=ids_of(suspect))
            return finding
        ended = (suspect.job_id, suspect.job_type, record.message)
        log.warning("job %s (%s) is ended: %s", *ended, extra=ids_of(suspect))
        return replace(finding, healed=True)
