"""Results of jobs under their permalinks, as long as they are retained."""

from __future__ import annotations

import builtins
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from duly.blobs import BlobNotFound, BlobRef
from duly.core.errors import ContractError, UnknownResult
from duly.core.job import Actor, JobSnapshot
from duly.core.policy import Retention
from duly.db.pool import Connection
from duly.features.arguments import org_uuid, required_text, required_uuid
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.pagination import page_size
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.store import ResultKind, StoredResult

_MAX_PAGE_BYTES = 2**20
_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A partial or final result of a job."""

    seq: int
    kind: ResultKind
    chunk_key: str | None
    value: Any
    created_at: datetime
    expires_at: datetime
    """The end of the retention; its partition is dropped no earlier."""
    large: bool = False
    """Whether the value was left out; `get` returns it by its number."""
    summary: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Result:
    """The job of a permalink, and one of its snapshots."""

    job: JobSnapshot
    snapshot: Snapshot | None
    """None while the job has no result, also if it ended without one."""

    @property
    def result_id(self) -> UUID:
        """The id of the permalink."""
        return self.job.result_id

    @property
    def latest_seq(self) -> int:
        """The number of the latest snapshot; 0 without one."""
        return self.job.latest_result_seq

    @property
    def expires_at(self) -> datetime | None:
        """The end of the retention of the snapshot."""
        return None if self.snapshot is None else self.snapshot.expires_at


class Results:
    """The results of the orgs. Unknown, foreign and expired results raise the same error."""

    def __init__(self, app: App, retention: Retention) -> None:
        self._app = app
        self._retention = retention

    async def get(self, org_id: UUID | str, result_id: UUID | str, *, seq: int | None = None) -> Result:
        """Return the latest snapshot, which is the final one if there is one, or that of a number."""
        org, result = org_uuid(org_id), required_uuid("result_id", result_id)
        if seq is not None:
            _check_number("seq", seq, minimum=1)
        async with self._app.tenant_session(org) as conn:
            job = await _read_job(conn, org, result)
            number = seq or job.latest_result_seq
            row = await job_store.read_result(conn, org, job.job_id, number) if number else None
        if number > job.latest_result_seq:
            raise UnknownResult(
                f"there is no snapshot {number}", field="seq", fix=f"the latest is {job.latest_result_seq}"
            )
        if not number:
            return Result(job, None)
        if row is None:
            raise unknown_result(result)
        try:
            return Result(job, self._snapshot(row, await self._load_value(org, row)))
        except BlobNotFound:
            raise unknown_result(result) from None

    async def job(self, org_id: UUID | str, result_id: UUID | str) -> JobSnapshot:
        """Return the job of a result."""
        org = org_uuid(org_id)
        async with self._app.tenant_session(org) as conn:
            return await _read_job(conn, org, required_uuid("result_id", result_id))

    async def list(
        self, org_id: UUID | str, result_id: UUID | str, *, after: int = 0, limit: int = 50
    ) -> builtins.list[Snapshot]:
        """Return the snapshots after a number in order, the final one last.

        Large values, and values that would make the page larger than a megabyte, are left out.
        """
        org, result, size = org_uuid(org_id), required_uuid("result_id", result_id), page_size(limit)
        _check_number("after", after, minimum=0)
        async with self._app.tenant_session(org) as conn:
            job = await _read_job(conn, org, result)
            rows = await job_store.list_results_after(
                conn, org, job.job_id, after, limit=size, size=_MAX_PAGE_BYTES
            )
        return [self._snapshot(row, row.payload) for row in rows]

    async def erase(
        self, org_id: UUID | str, subject_id: str, *, actor: Actor, reason: str | None = None
    ) -> tuple[int, int]:
        """Erase the results of ended jobs about a subject; return the number of snapshots and files.

        The jobs and their events stay. The files are deleted by the next clean-up.
        """
        org, subject = org_uuid(org_id), required_text("subject_id", subject_id)
        request = change_request(actor, reason, optional=True)

        async def once(conn: Connection) -> tuple[int, int]:
            snapshots, files = await job_store.erase_results(conn, org, subject)
            if snapshots or files:
                await record_entry(
                    conn, request, org, "result.erased", subject, snapshots=snapshots, files=files
                )
            return snapshots, files

        return await audited_transaction(self._app, once)

    async def _load_value(self, org_id: UUID, row: StoredResult) -> Any:
        if row.payload_ref is None:
            return row.payload
        blobs = (await self._app.resources()).blobs
        return json.loads(await blobs.get(BlobRef.parse(row.payload_ref), org_id=org_id))

    def _snapshot(self, row: StoredResult, value: Any) -> Snapshot:
        is_final = row.result_kind == "final"
        retention = self._retention.final_results if is_final else self._retention.partial_results
        return Snapshot(
            seq=row.result_seq,
            kind=row.result_kind,
            chunk_key=row.chunk_key,
            value=value,
            created_at=row.created_at,
            expires_at=row.created_at + retention,
            large=row.large,
            summary=row.summary or {},
        )


def unknown_result(result_id: UUID) -> UnknownResult:
    """Return the one error of a result that is unknown, of another org, expired or invisible."""
    return UnknownResult(
        f"no result {result_id} in this org", field="result_id", fix="check the id and the org"
    )


async def _read_job(conn: Connection, org_id: UUID, result_id: UUID) -> JobSnapshot:
    job_id = await job_store.find_result_job(conn, org_id, result_id)
    job = await job_store.read_job(conn, org_id, job_id) if job_id else None
    if job is None:
        raise unknown_result(result_id)
    return job


def _check_number(field: str, value: int, *, minimum: int) -> None:
    if type(value) is not int or not minimum <= value <= _MAX_INT32:
        raise ContractError(f"{value!r} is out of range", field=field, fix=f"use {minimum} or more")
