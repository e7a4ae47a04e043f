"""Adapter sync: make domain records and the status of their jobs agree."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from duly.core.error_report import describe_error
from duly.core.errors import ContractError
from duly.core.job import SYSTEM_ORG, Actor, JobSnapshot
from duly.core.reconciliation import ReconciliationKind, ReconciliationRecord, ReconciliationSource
from duly.core.states import Status
from duly.db.pool import Connection
from duly.db.session_settings import ENGINE_ROLE_SQL
from duly.jobs import stale_jobs
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.registry import Adapter, DomainRecord, list_orgs
from duly.jobs.stale_jobs import JobEvidence
from duly.maintenance.reconciler import (
    GRACE,
    ReconciliationFinding,
    diagnose_by_record,
    fail_job,
)
from duly.observability import metrics

log = logging.getLogger("duly.maintenance")
_MAX_ORGS_PER_SWEEP = 50
_MAX_RECORDS = 200
_ADAPTER_TIMEOUT = 30.0
_MAX_REMEMBERED = 10_000
_MAX_UNKNOWN_CHECKED = 20
_FIRST_ORG = UUID(int=0)


class AdapterSync:
    """The chore that compares, org by org, the records that adapters find with their jobs."""

    name = "adapters"

    def __init__(self, app: App, every: timedelta = timedelta(seconds=10), grace: timedelta = GRACE) -> None:
        self._app = app
        self._every = every
        self._grace = grace
        self._after = _FIRST_ORG
        self._first_found: dict[tuple[str, UUID, str, int], float] = {}
        self.troubles: list[str] = []
        """The errors of the last sweep."""

    async def once(self) -> timedelta:
        """Sweep over some orgs."""
        await self.sweep()
        return self._every

    async def sweep_all(self, *, dry_run: bool = False) -> list[ReconciliationFinding]:
        """Compare the records of all orgs, starting with the first."""
        self._after, troubles = _FIRST_ORG, []
        findings = await self.sweep(dry_run=dry_run)
        troubles += self.troubles
        while self._after != _FIRST_ORG:
            findings += await self.sweep(dry_run=dry_run)
            troubles += self.troubles
        self.troubles = troubles
        return findings

    async def sweep(self, *, dry_run: bool = False) -> list[ReconciliationFinding]:
        """Compare the records of some orgs and correct differences. A failing adapter stops no other."""
        self.troubles = []
        if not self._app.adapters:
            return []
        findings: list[ReconciliationFinding] = []
        for org_id, now in await self._next_orgs():
            for adapter in self._app.adapters.values():
                try:
                    async with asyncio.timeout(_ADAPTER_TIMEOUT):
                        findings += await self._compare(adapter, org_id, now, dry_run=dry_run)
                except Exception as error:
                    message = describe_error(error, job_type=adapter.name).message or type(error).__name__
                    self.troubles.append(f"the adapter {adapter.name} failed for org {org_id}: {message}")
                    log.warning("%s", self.troubles[-1])
        return findings

    async def _next_orgs(self) -> list[tuple[UUID, datetime]]:
        async with (await self._app.resources()).database.engine() as conn:
            orgs = await list_orgs(conn, self._after, limit=_MAX_ORGS_PER_SWEEP)
        self._after = orgs[-1][0] if len(orgs) == _MAX_ORGS_PER_SWEEP else _FIRST_ORG
        return [(org_id, now) for org_id, now in orgs if org_id != SYSTEM_ORG]

    async def _compare(
        self, adapter: Adapter, org_id: UUID, now: datetime, *, dry_run: bool
    ) -> list[ReconciliationFinding]:
        async with self._app.tenant_session(org_id) as conn:
            records = list(await adapter.find(conn, _MAX_RECORDS))[:_MAX_RECORDS]
            known = await job_store.read_jobs(conn, org_id, [record.job_id for record in records])
        await self._check_org(adapter, [record for record in records if record.job_id not in known])
        findings: list[ReconciliationFinding | None] = []
        for record in records:
            job = known.get(record.job_id)
            if not record.over and (job is None or job.status.terminal):
                finding = _unsettled_record(adapter, org_id, record, job, now)
                findings.append(finding if dry_run else await self._settle(adapter, record, job, finding))
        active = {job.job_id for job in known.values() if not job.status.terminal}
        ended_records = [record for record in records if record.over and record.job_id in active]
        findings += await self._fail_jobs(adapter, org_id, ended_records, dry_run=dry_run)
        return [finding for finding in findings if finding is not None]

    async def _check_org(self, adapter: Adapter, unknown: Sequence[DomainRecord]) -> None:
        """Raise if an adapter found records of another org: their jobs only seem to be gone."""
        if not unknown:
            return
        async with (await self._app.resources()).database.engine() as conn:
            in_other_orgs = await stale_jobs.existing_jobs(
                conn, [record.job_id for record in unknown[:_MAX_UNKNOWN_CHECKED]]
            )
        foreign = [record.record_id for record in unknown if record.job_id in in_other_orgs]
        if foreign:
            raise ContractError(
                f"{adapter.name} {foreign[0]} belongs to a job of another org",
                field="find",
                fix="find only records of duly.current_org(), or give their table row level security",
            )

    def _is_too_early(self, adapter: Adapter, job: JobEvidence, record_id: str) -> bool:
        """Whether a handler that has ended its record may still be about to end its job."""
        if Status(job.status) is Status.QUEUED:
            return False
        key = (adapter.name, job.org_id, record_id, job.attempt)
        if len(self._first_found) > _MAX_REMEMBERED:
            self._first_found.clear()
        first = self._first_found.setdefault(key, time.monotonic())
        return time.monotonic() < first + self._grace.total_seconds()

    async def _settle(
        self, adapter: Adapter, record: DomainRecord, job: JobSnapshot | None, finding: ReconciliationFinding
    ) -> ReconciliationFinding | None:
        """Settle a domain record whose job has ended."""
        async with self._app.tenant_session(finding.org_id) as conn:
            if not await adapter.settle(conn, record, job):
                return None
            await conn.execute(ENGINE_ROLE_SQL)
            await _write_audit_entry(conn, adapter, finding)
        metrics.count_reconciled(finding.record.kind, finding.record.reason_code)
        return replace(finding, healed=True)

    async def _fail_jobs(
        self, adapter: Adapter, org_id: UUID, records: Sequence[DomainRecord], *, dry_run: bool
    ) -> list[ReconciliationFinding | None]:
        """Fail the active jobs of domain records that are over."""
        if not records:
            return []
        by_job = {record.job_id: record for record in records}
        async with (await self._app.resources()).database.engine() as conn:
            found = await stale_jobs.read_evidence(conn, [(org_id, job_id) for job_id in by_job])
        findings: list[ReconciliationFinding | None] = []
        for job in found:
            record = by_job[job.job_id]
            reason = diagnose_by_record(job, record.reason, record.record_id, adapter.name)
            if reason is None:
                continue
            early = self._is_too_early(adapter, job, record.record_id)
            finding = ReconciliationFinding(
                org_id, job.job_id, job.job_type, job.status, Status.FAILED, reason
            )
            healed = not dry_run and not early and await fail_job(self._app, job, reason)
            if dry_run or early or healed:
                findings.append(replace(finding, healed=healed, record_id=record.record_id))
        return findings


def _unsettled_record(
    adapter: Adapter, org_id: UUID, record: DomainRecord, job: JobSnapshot | None, now: datetime
) -> ReconciliationFinding:
    state = "no longer exists" if job is None else f"is already {job.status}"
    reason = ReconciliationRecord.of(
        ReconciliationKind.ADAPTER_SYNC,
        {"adapter": adapter.name, "record_id": record.record_id},
        now,
        message=f"{adapter.name} {record.record_id} is not over, but its job {state}",
        source=ReconciliationSource.ADAPTER_RECONCILER,
    )
    status, job_type = ("gone", "") if job is None else (job.status.value, job.job_type)
    return ReconciliationFinding(
        org_id, record.job_id, job_type, status, status, reason, record_id=record.record_id
    )


async def _write_audit_entry(conn: Connection, adapter: Adapter, finding: ReconciliationFinding) -> None:
    """Record the correction in the audit log: an ended job takes no more reconciliation records."""
    await job_store.record_audit_entry(
        conn,
        org_id=finding.org_id,
        actor=Actor.system("reconciler"),
        action="record.reconciled",
        target_type=adapter.name,
        target_id=finding.record_id or "",
        reason=finding.record.reason_code,
        detail={"job_id": str(finding.job_id), **finding.record.model_dump(mode="json", exclude_none=True)},
    )
