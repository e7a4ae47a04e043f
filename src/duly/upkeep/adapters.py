"""Adapter sync: the product's records and their jobs say the same, or are made to."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from duly.client.adapter import Adapter, DomainRecord
from duly.client.app import App
from duly.model.error_report import describe
from duly.model.errors import ContractError
from duly.model.job import Actor, JobSnapshot
from duly.model.reconciliation import ReconciliationKind, ReconciliationRecord, ReconciliationSource
from duly.model.states import Status
from duly.model.system import SYSTEM_ORG
from duly.store import audit, listing, suspects
from duly.store.pool import Connection
from duly.store.registry import list_orgs
from duly.store.session import ENGINE_ROLE
from duly.store.suspects import Suspect
from duly.upkeep.heal import count, overrule
from duly.upkeep.judge import GRACE, Finding, overruled_by

log = logging.getLogger("duly.upkeep")
_ORGS = 50
_AT_ONCE = 200
_PATIENCE = 30.0
_REMEMBERED = 10_000
_LOOKED_UP = 20
_NOBODY = UUID(int=0)


class AdapterSync:
    """The chore that goes around the orgs, and compares what the adapters find with their jobs."""

    name = "adapters"

    def __init__(self, app: App, every: timedelta = timedelta(seconds=10), grace: timedelta = GRACE) -> None:
        self._app = app
        self._every = every
        self._grace = grace
        self._after = _NOBODY
        self._first_seen: dict[tuple[str, UUID, str, int], float] = {}
        self.troubles: list[str] = []
        """What went wrong in the last sweep."""

    async def once(self) -> timedelta:
        """One sweep over some orgs."""
        await self.sweep()
        return self._every

    async def go_around(self, *, dry_run: bool = False) -> list[Finding]:
        """Compare the records of all orgs, from the first on."""
        self._after, troubles = _NOBODY, []
        findings = await self.sweep(dry_run=dry_run)
        troubles += self.troubles
        while self._after != _NOBODY:
            findings += await self.sweep(dry_run=dry_run)
            troubles += self.troubles
        self.troubles = troubles
        return findings

    async def sweep(self, *, dry_run: bool = False) -> list[Finding]:
        """Compare, and put right what differs. One adapter that fails stops no other."""
        self.troubles = []
        if not self._app.adapters:
            return []
        findings: list[Finding] = []
        for org_id, now in await self._next_orgs():
            for adapter in self._app.adapters.values():
                try:
                    async with asyncio.timeout(_PATIENCE):
                        findings += await self._compare(adapter, org_id, now, dry_run=dry_run)
                except Exception as error:
                    said = describe(error, job_type=adapter.name).message or type(error).__name__
                    self.troubles.append(f"the adapter {adapter.name} failed for org {org_id}: {said}")
                    log.warning("%s", self.troubles[-1])
        return findings

    async def _next_orgs(self) -> list[tuple[UUID, datetime]]:
        async with (await self._app.ground()).database.engine_session() as conn:
            found = await list_orgs(conn, self._after, limit=_ORGS)
        self._after = found[-1][0] if len(found) == _ORGS else _NOBODY
        return [(org_id, now) for org_id, now in found if org_id != SYSTEM_ORG]

    async def _compare(
        self, adapter: Adapter, org_id: UUID, now: datetime, *, dry_run: bool
    ) -> list[Finding]:
        async with self._app.tenant_session(org_id) as conn:
            records = list(await adapter.find(conn, _AT_ONCE))[:_AT_ONCE]
            known = await listing.read(conn, org_id, [record.job_id for record in records])
        await self._check_own(adapter, [record for record in records if record.job_id not in known])
        found: list[Finding | None] = []
        for record in records:
            job = known.get(record.job_id)
            if not record.over and (job is None or job.status.terminal):
                finding = _found(adapter, org_id, record, job, now)
                found.append(finding if dry_run else await self._settle(adapter, record, job, finding))
        active = {job.job_id for job in known.values() if not job.status.terminal}
        overtaken = [record for record in records if record.over and record.job_id in active]
        found += await self._overrule(adapter, org_id, overtaken, dry_run=dry_run)
        return [finding for finding in found if finding is not None]

    async def _check_own(self, adapter: Adapter, unknown: Sequence[DomainRecord]) -> None:
        """A job that only another org knows is not gone: the adapter looked beyond its org."""
        if not unknown:
            return
        async with (await self._app.ground()).database.engine_session() as conn:
            elsewhere = await suspects.elsewhere(conn, [record.job_id for record in unknown[:_LOOKED_UP]])
        strangers = [record.record_id for record in unknown if record.job_id in elsewhere]
        if strangers:
            raise ContractError(
                f"{adapter.name} {strangers[0]} belongs to a job of another org",
                field="find",
                fix="find only records of duly.current_org(), or give their table row level security",
            )

    def _is_too_early(self, adapter: Adapter, suspect: Suspect, record_id: str) -> bool:
        """A handler may have said that its record is over, and be about to end."""
        if Status(suspect.status) is Status.QUEUED:
            return False
        key = (adapter.name, suspect.org_id, record_id, suspect.attempt)
        if len(self._first_seen) > _REMEMBERED:
            self._first_seen.clear()
        first = self._first_seen.setdefault(key, time.monotonic())
        return time.monotonic() < first + self._grace.total_seconds()

    async def _settle(
        self, adapter: Adapter, record: DomainRecord, job: JobSnapshot | None, finding: Finding
    ) -> Finding | None:
        """The job has ended, and its record does not know yet."""
        async with self._app.tenant_session(finding.org_id) as conn:
            if not await adapter.settle(conn, record, job):
                return None
            await conn.execute(ENGINE_ROLE)
            await _note(conn, adapter, finding)
        count(finding.record)
        return replace(finding, healed=True)

    async def _overrule(
        self, adapter: Adapter, org_id: UUID, records: Sequence[DomainRecord], *, dry_run: bool
    ) -> list[Finding | None]:
        """The record is over, and its job does not know yet."""
        if not records:
            return []
        by_job = {record.job_id: record for record in records}
        async with (await self._app.ground()).database.engine_session() as conn:
            found = await suspects.look(conn, [(org_id, job_id) for job_id in by_job])
        findings: list[Finding | None] = []
        for suspect in found:
            record = by_job[suspect.job_id]
            reason = overruled_by(suspect, record.reason, record.record_id, adapter.name)
            if reason is None:
                continue
            early = self._is_too_early(adapter, suspect, record.record_id)
            finding = Finding(org_id, suspect.job_id, suspect.job_type, suspect.status, Status.FAILED, reason)
            healed = not dry_run and not early and await overrule(self._app, suspect, reason)
            if dry_run or early or healed:
                findings.append(replace(finding, healed=healed, record_id=record.record_id))
        return findings


def _found(
    adapter: Adapter, org_id: UUID, record: DomainRecord, job: JobSnapshot | None, now: datetime
) -> Finding:
    said = "is no longer kept" if job is None else f"is {job.status} already"
    reason = ReconciliationRecord.of(
        ReconciliationKind.ADAPTER_SYNC,
        {"adapter": adapter.name, "record_id": record.record_id},
        now,
        message=f"{adapter.name} {record.record_id} is not over, but its job {said}",
        source=ReconciliationSource.ADAPTER_RECONCILER,
    )
    status, job_type = ("gone", "") if job is None else (job.status.value, job.job_type)
    return Finding(org_id, record.job_id, job_type, status, status, reason, record_id=record.record_id)


async def _note(conn: Connection, adapter: Adapter, finding: Finding) -> None:
    """An ended job takes no more records: what was done to its product's record is in the audit trail."""
    await audit.record(
        conn,
        org_id=finding.org_id,
        actor=Actor.system("reconciler"),
        action="record.reconciled",
        target_type=adapter.name,
        target_id=finding.record_id or "",
        reason=finding.record.reason_code,
        detail={"job_id": str(finding.job_id), **finding.record.model_dump(mode="json", exclude_none=True)},
    )
