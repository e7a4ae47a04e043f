"""Results under their permalinks: for everybody of the org who has the link, as long as they are kept."""

from __future__ import annotations

import builtins
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from duly.blobs import BlobNotFound, BlobRef
from duly.core.errors import ContractError, MissingField, UnknownResult
from duly.core.job import Actor, JobSnapshot
from duly.core.policy import Retention
from duly.core.states import Status
from duly.db.pool import Connection
from duly.features.arguments import org_uuid, required_text
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.pagination import page_size
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid
from duly.jobs.store import ResultKind, StoredResult

_PAGE_BYTES = 2**20
_LAST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a job had brought at one time: a part of it, or all."""

    seq: int
    kind: ResultKind
    chunk_key: str | None
    value: Any
    created_at: datetime
    expires_at: datetime
    """It is kept at least until then; its partition may go no earlier."""
    large: bool = False
    """Whether the value was left out: `get` has it, by its number."""
    summary: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Result:
    """What lies under a permalink: the job, and one of its snapshots if there is any yet."""

    job: JobSnapshot
    snapshot: Snapshot | None
    """None as long as the job has brought nothing, also when it ended so."""

    @property
    def result_id(self) -> UUID:
        """The permalink."""
        return self.job.result_id

    @property
    def latest_seq(self) -> int:
        """The number of the job's last snapshot; 0 without one."""
        return _latest(self.job)

    @property
    def expires_at(self) -> datetime | None:
        """Until when the snapshot is kept at least."""
        return None if self.snapshot is None else self.snapshot.expires_at


class Results:
    """The results of the orgs of an application. Unknown, foreign and no longer kept is all the same."""

    def __init__(self, app: App, keep: Retention) -> None:
        self._app = app
        self._keep = keep

    async def get(self, org_id: UUID | str, result_id: UUID | str, *, seq: int | None = None) -> Result:
        """The latest snapshot, which is the final one if there is any, or the one of that number."""
        whose, which = org_uuid(org_id), _link(result_id)
        number = None if seq is None else _number("seq", seq, 1)
        async with self._app.tenant_session(whose) as conn:
            job = await _found(conn, whose, which)
            wanted = number or _latest(job)
            kept = await job_store.read_result(conn, whose, job.job_id, wanted) if wanted else None
        if number is not None and number > _latest(job):
            raise UnknownResult(
                f"there is no snapshot {number}", field="seq", fix=f"the latest is {_latest(job)}"
            )
        if wanted and kept is None:
            raise _unknown(which)
        if kept is None:
            return Result(job, None)
        try:
            return Result(job, self._snapshot(kept, await self._loaded(whose, kept)))
        except BlobNotFound:
            raise _unknown(which) from None

    async def job(self, org_id: UUID | str, result_id: UUID | str) -> JobSnapshot:
        """The job that it is the result of."""
        whose = org_uuid(org_id)
        async with self._app.tenant_session(whose) as conn:
            return await _found(conn, whose, _link(result_id))

    async def list(
        self, org_id: UUID | str, result_id: UUID | str, *, after: int = 0, limit: int = 50
    ) -> builtins.list[Snapshot]:
        """The snapshots after a number in their order, the final one last; large values are left out.

        So are those that would make the page larger than a megabyte.
        """
        whose, which, size = org_uuid(org_id), _link(result_id), page_size(limit)
        start = _number("after", after, 0)
        async with self._app.tenant_session(whose) as conn:
            job = await _found(conn, whose, which)
            found = await job_store.list_results_after(
                conn, whose, job.job_id, start, limit=size, size=_PAGE_BYTES
            )
        return [self._snapshot(kept, kept.payload) for kept in found]

    async def erase(
        self, org_id: UUID | str, subject_id: str, *, actor: Actor, reason: str | None = None
    ) -> tuple[int, int]:
        """Forget what ended jobs about a subject brought, before its time; how many snapshots and files.

        The jobs and their history stay. Files go with the next clean-up.
        """
        whose, subject, who = (
            org_uuid(org_id),
            required_text("subject_id", subject_id),
            change_request(actor, reason, optional=True),
        )

        async def once(conn: Connection) -> tuple[int, int]:
            snapshots, files = await job_store.erase_results(conn, whose, subject)
            if snapshots or files:
                await record_entry(
                    conn, who, whose, "result.erased", subject, snapshots=snapshots, files=files
                )
            return snapshots, files

        return await audited_transaction(self._app, once)

    async def _loaded(self, org_id: UUID, kept: StoredResult) -> Any:
        if kept.payload_ref is None:
            return kept.payload
        blobs = (await self._app.resources()).blobs
        return json.loads(await blobs.get(BlobRef.parse(kept.payload_ref), org_id=org_id))

    def _snapshot(self, kept: StoredResult, value: Any) -> Snapshot:
        keep = self._keep.final_results if kept.result_kind == "final" else self._keep.partial_results
        return Snapshot(
            seq=kept.result_seq,
            kind=kept.result_kind,
            chunk_key=kept.chunk_key,
            value=value,
            created_at=kept.created_at,
            expires_at=kept.created_at + keep,
            large=kept.large,
            summary=kept.summary or {},
        )


async def _found(conn: Connection, org_id: UUID, result_id: UUID) -> JobSnapshot:
    job_id = await job_store.find_result_job(conn, org_id, result_id)
    job = await job_store.read_job(conn, org_id, job_id) if job_id else None
    if job is None:
        raise _unknown(result_id)
    return job


def _latest(job: JobSnapshot) -> int:
    return job.partial_count + (job.status is Status.COMPLETED)


def _link(result_id: UUID | str) -> UUID:
    found = as_uuid("result_id", result_id)
    if found is None:
        raise MissingField("missing", field="result_id", fix="pass the id of the result")
    return found


def _number(field: str, value: int, least: int) -> int:
    if type(value) is not int or not least <= value <= _LAST:
        raise ContractError(f"{value!r} is out of range", field=field, fix=f"use {least} or more")
    return value


def _unknown(result_id: UUID) -> UnknownResult:
    return UnknownResult(
        f"no result {result_id} in this org", field="result_id", fix="check the id and the org"
    )
