"""Dead letters: list, replay, fix and discard them. Each change is audited in its transaction."""

from __future__ import annotations

import builtins
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from duly.core.errors import ContractError, NotFound
from duly.core.job import Actor
from duly.db.pool import Connection
from duly.deprecated_names import DeprecatedName
from duly.features.arguments import check_org_exists, org_uuid, required_text, required_uuid
from duly.features.audit.entries import audited_transaction, change_request
from duly.features.dead_letters import replay, store
from duly.features.dead_letters.models import (
    DeadLetter,
    DeadLetterDetail,
    DeadLetterGroup,
    DeadLetterGroupDetail,
    DeadLetterPage,
    ReplayedJob,
    ReplayReport,
    ReplaySpec,
    Resolution,
    ResolutionRequest,
)
from duly.features.dead_letters.replay import record_job_entry, resolve_letters
from duly.features.dead_letters.store import (
    DeadLetterCursor,
    DeadLetterFilter,
    list_failure_groups,
    lock_letters,
    replay_jobs,
)
from duly.features.pagination import MAX_PAGE_SIZE, decode_cursor, read_org_page
from duly.jobs.application import App
from duly.jobs.enqueue import store_payload
from duly.jobs.handle import Handle
from duly.jobs.request_context import checked_text, current_context
from duly.observability import metrics

__all__ = [
    "DeadLetters",
    "count_enqueued",
    "list_failure_groups",
    "lock_letters",
    "record_job_entry",
    "replay_jobs",
    "resolve_letters",
]

_NEWEST = DeadLetterCursor(datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))
_OLDEST = DeadLetterCursor(datetime.min.replace(tzinfo=UTC), UUID(int=0))
_MAX_LETTERS_PER_TRANSACTION = 500
_MAX_LETTERS_PER_CALL = 100_000
_MAX_GROUPS_OF_ALL_ORGS = 1_000


class DeadLetters:
    """The dead letters of the orgs of an application."""

    kind = DeprecatedName("group")
    groups_everywhere = DeprecatedName("groups_of_all_orgs")

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(
        self,
        org_id: UUID | str,
        *,
        fingerprint: str | None = None,
        job_type: str | None = None,
        resolved: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> DeadLetterPage:
        """Return the open letters of an org, or the resolved ones; newest first."""
        org, letter_filter = org_uuid(org_id), _filter(fingerprint, job_type)
        before = decode_cursor(after, DeadLetterCursor.parse) or _NEWEST

        async def read(conn: Connection, size: int) -> Sequence[DeadLetter]:
            return await store.list_letters(
                conn, org, letter_filter, before=before, limit=size, resolved=resolved
            )

        return DeadLetterPage(
            *await read_org_page(
                self._app, org, read, lambda last: (last.dead_at.isoformat(), last.job_id), limit=limit
            )
        )

    async def groups(self, org_id: UUID | str) -> builtins.list[DeadLetterGroup]:
        """Return the open letters by kind of failure, latest first."""
        org = org_uuid(org_id)
        async with self._app.tenant_session(org) as conn:
            groups = await store.list_groups(conn, org, limit=MAX_PAGE_SIZE)
            if not groups:
                await check_org_exists(conn, org)
            return groups

    async def groups_of_all_orgs(self) -> builtins.list[DeadLetterGroup]:
        """Return the open letters of all orgs by org and kind of failure, latest first; for operators.

        A kind of failure has the same fingerprint in every org.
        """
        async with (await self._app.resources()).database.engine() as conn:
            return await store.list_groups_by_org(conn, limit=_MAX_GROUPS_OF_ALL_ORGS)

    async def group(self, org_id: UUID | str, fingerprint: str) -> DeadLetterGroupDetail:
        """Return one kind of failure: its open letters, and the new jobs of the latest resolved ones."""
        org, key = org_uuid(org_id), required_text("fingerprint", fingerprint)
        async with self._app.tenant_session(org) as conn:
            group = await store.read_group(conn, org, key)
        if group is None:
            raise NotFound(f"no dead letter of kind {key}", field="fingerprint", fix="list the groups")
        return group

    async def get(self, org_id: UUID | str, job_id: UUID | str) -> DeadLetterDetail:
        """Return one letter with its error and the input of its job; an unknown id raises."""
        org, job = org_uuid(org_id), required_uuid("job_id", job_id)
        async with self._app.tenant_session(org) as conn:
            letter = await store.read_letter(conn, org, job)
        if letter is None:
            raise replay.unknown_letter(job)
        return letter

    async def replay(self, org_id: UUID | str, job_id: UUID | str, actor: Actor, reason: str) -> Handle[Any]:
        """Replay a letter as a new job. A second call returns the same new job."""
        request, spec = _request(org_id, actor, reason), ReplaySpec(required_uuid("job_id", job_id))
        return await self._enqueue(
            request, lambda conn: replay.replay_letter(conn, request, spec, Resolution.REPLAYED)
        )

    async def fix(
        self, org_id: UUID | str, job_id: UUID | str, payload: Mapping[str, Any], actor: Actor, reason: str
    ) -> Handle[Any]:
        """Replay a letter as a new job with another payload, which its job type must accept."""
        request, letter = _request(org_id, actor, reason), await self.get(org_id, job_id)
        if letter.resolution is not None:
            raise replay.already_resolved(letter)
        spec = await self._spec_with_payload(request, letter.job_id, letter.job_type, payload)
        return await self._enqueue(
            request, lambda conn: replay.replay_letter(conn, request, spec, Resolution.FIXED)
        )

    async def discard(self, org_id: UUID | str, job_id: UUID | str, actor: Actor, reason: str) -> None:
        """Discard a letter; the job is not retried. A second call changes nothing."""
        request, job = _request(org_id, actor, reason), required_uuid("job_id", job_id)
        await audited_transaction(self._app, lambda conn: replay.discard_letter(conn, request, job))

    async def discard_many(
        self,
        org_id: UUID | str,
        *,
        actor: Actor,
        reason: str,
        fingerprint: str | None = None,
        job_type: str | None = None,
        limit: int = 1000,
    ) -> int:
        """Discard open letters, oldest first, in transactions of 500; return how many."""
        request, letter_filter = _request(org_id, actor, reason), _filter(fingerprint, job_type)
        _check_limit(limit)
        total = 0
        cursor: DeadLetterCursor | None = _OLDEST
        while cursor is not None and total < limit:
            size = min(_MAX_LETTERS_PER_TRANSACTION, limit - total)
            batch = replay.LetterBatch(request, letter_filter, cursor, size)
            count, cursor = await audited_transaction(self._app, batch.discard)
            total += count
        return total

    async def rerun(
        self,
        org_id: UUID | str,
        job_id: UUID | str,
        actor: Actor,
        reason: str,
        *,
        payload: Mapping[str, Any] | None = None,
    ) -> Handle[Any]:
        """Run any ended job again as a new job; while that is active, a second call returns it.

        A payload replaces that of the job; its job type must accept it. An open dead letter is replayed, or
        fixed.
        """
        request, job = _request(org_id, actor, reason), required_uuid("job_id", job_id)
        spec = ReplaySpec(job)
        if payload is not None:
            ended = await Handle[Any](self._app, request.org_id, job).status()
            spec = await self._spec_with_payload(request, job, ended.job_type, payload)
        return await self._enqueue(request, lambda conn: replay.rerun_job(conn, request, spec))

    async def replay_many(
        self,
        org_id: UUID | str,
        *,
        per_second: float,
        actor: Actor,
        reason: str,
        fingerprint: str | None = None,
        job_type: str | None = None,
        limit: int = 1000,
    ) -> ReplayReport:
        """Replay open letters, oldest first; at most `per_second` of the new jobs become due per second.

        The rate is in the times at which they become due: no process has to stay alive for it. Letters are
        replayed in transactions of 500. If one fails, those before it stand, and another call continues.
        """
        request, letter_filter = _request(org_id, actor, reason), _filter(fingerprint, job_type)
        interval = _interval(per_second)
        _check_limit(limit)
        jobs: builtins.list[ReplayedJob] = []
        left: dict[UUID, str] = {}
        cursor: DeadLetterCursor | None = _OLDEST
        while cursor is not None and (processed := len(jobs) + len(left)) < limit:
            size = min(_MAX_LETTERS_PER_TRANSACTION, limit - processed)
            batch = replay.LetterBatch(request, letter_filter, cursor, size, processed, interval)
            new, skipped, cursor = await audited_transaction(self._app, batch.replay)
            count_enqueued(new)
            await self._wake_workers()
            jobs, left = [*jobs, *new], {**left, **skipped}
        handles = tuple(self._handle(request, job) for job in jobs)
        return ReplayReport(handles, left, max((job.run_at for job in jobs if job.run_at), default=None))

    async def _spec_with_payload(
        self, request: ResolutionRequest, job_id: UUID, job_type: str, payload: Mapping[str, Any]
    ) -> ReplaySpec:
        encoded = self._app.registry.get(job_type).codec.encode_mapping(payload)
        stored = await store_payload(await self._app.resources(), request.org_id, encoded)
        return ReplaySpec(job_id, **stored._asdict())

    async def _enqueue(
        self, request: ResolutionRequest, work: Callable[[Connection], Awaitable[ReplayedJob]]
    ) -> Handle[Any]:
        job = await audited_transaction(self._app, work)
        count_enqueued([job])
        await self._wake_workers()
        return self._handle(request, job)

    def _handle(self, request: ResolutionRequest, job: ReplayedJob) -> Handle[Any]:
        return Handle(self._app, request.org_id, job.job_id, created=job.created)

    async def _wake_workers(self) -> None:
        (await self._app.resources()).waker.wake()


def count_enqueued(jobs: Sequence[ReplayedJob]) -> None:
    """Count the new jobs in the metrics of enqueued jobs."""
    for (job_type, queue), count in Counter((job.job_type, job.queue) for job in jobs if job.created).items():
        metrics.count_enqueued(job_type, queue, count)


def _request(org_id: UUID | str, actor: Actor, reason: str) -> ResolutionRequest:
    change, context = change_request(actor, reason), current_context()
    request_id = context.request_id or f"req-{uuid.uuid4().hex}"
    return ResolutionRequest(
        org_uuid(org_id), change.actor, change.reason or "", request_id, context.traceparent
    )


def _filter(fingerprint: str | None, job_type: str | None) -> DeadLetterFilter:
    return DeadLetterFilter(checked_text("fingerprint", fingerprint), checked_text("job_type", job_type))


def _check_limit(limit: int) -> None:
    if type(limit) is not int or not 1 <= limit <= _MAX_LETTERS_PER_CALL:
        raise ContractError(
            f"{limit!r} is out of range", field="limit", fix=f"use 1 to {_MAX_LETTERS_PER_CALL}"
        )


def _interval(per_second: float) -> float:
    """Return the seconds between two jobs."""
    if type(per_second) not in (int, float) or not 0.001 <= per_second <= 10_000:
        raise ContractError(f"{per_second!r} is out of range", field="per_second", fix="use 0.001 to 10000")
    return 1 / per_second
