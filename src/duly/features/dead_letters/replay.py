"""Replay, rerun and discard inside one transaction. A letter is resolved once, under its lock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from duly.core.errors import AlreadyResolved, Conflict, UnknownJob
from duly.db.pool import Connection
from duly.features.arguments import require
from duly.features.dead_letters import store
from duly.features.dead_letters.models import (
    DeadLetter,
    ReplayedJob,
    ReplayResult,
    ReplaySpec,
    Resolution,
    ResolutionRequest,
)
from duly.features.dead_letters.store import DeadLetterCursor, DeadLetterFilter, LockedLetter
from duly.features.system_jobs import check_may_change, may_change
from duly.jobs import store as job_store


async def replay_letter(
    conn: Connection, request: ResolutionRequest, spec: ReplaySpec, resolution: Resolution
) -> ReplayedJob:
    """Resolve a letter with a new job; a second replay returns the job of the first."""
    letter = await _lock_letter(conn, request, spec.job_id)
    check_may_change(request.actor, letter.job_type)
    if letter.resolution is not None:
        if letter.successor_job_id is None or not letter.resolution == resolution == Resolution.REPLAYED:
            raise already_resolved(letter)
        return ReplayedJob(letter.successor_job_id, created=False)
    job = await _replay_job(conn, request, spec)
    await resolve_letters(conn, request, resolution, {letter: job.job_id})
    return job


async def discard_letter(conn: Connection, request: ResolutionRequest, job_id: UUID) -> None:
    """Resolve a letter without a new job; a second call changes nothing."""
    letter = await _lock_letter(conn, request, job_id)
    if letter.resolution is None:
        await resolve_letters(conn, request, Resolution.DISCARDED, {letter: None})
    elif letter.resolution != Resolution.DISCARDED:
        raise already_resolved(letter)


async def rerun_job(conn: Connection, request: ResolutionRequest, spec: ReplaySpec) -> ReplayedJob:
    """Run an ended job again as a new job; an open letter is replayed, or fixed."""
    job_id = spec.job_id
    ended = require(
        await job_store.read_job(conn, request.org_id, job_id), UnknownJob, f"job {job_id}", field="job_id"
    )
    check_may_change(request.actor, ended.job_type)
    if not ended.status.terminal:
        raise Conflict(f"{job_id} is {ended.status}", field="job_id", fix="cancel it, or wait for its end")
    letters = await store.lock_letters(conn, request.org_id, [job_id])
    if letters and letters[0].resolution is None:
        resolution = Resolution.REPLAYED if spec.payload is None else Resolution.FIXED
        return await replay_letter(conn, request, spec, resolution)
    job = await _replay_job(conn, request, spec)
    if not job.created and spec.payload is not None:
        raise Conflict(
            f"{job.job_id} already reruns it with another payload",
            field="job_id",
            fix="wait for its end, or cancel it",
        )
    if job.created:
        detail = {"successor_job_id": str(job.job_id)}
        await record_job_entry(conn, request, "job.rerun", job_id, ended.correlation_id, detail)
    return job


async def resolve_letters(
    conn: Connection,
    request: ResolutionRequest,
    resolution: Resolution,
    successors: Mapping[LockedLetter, UUID | None],
) -> None:
    """Resolve locked letters, each with its new job if it has one, and audit each."""
    job_ids = {letter.job_id: successor for letter, successor in successors.items()}
    await store.resolve_letters(conn, request, resolution, job_ids)
    async with conn.pipeline():
        for letter, successor in successors.items():
            detail = {"successor_job_id": successor and str(successor), "fingerprint": letter.fingerprint}
            await record_job_entry(
                conn, request, f"dead_letter.{resolution}", letter.job_id, letter.correlation_id, detail
            )


async def record_job_entry(
    conn: Connection,
    request: ResolutionRequest,
    action: str,
    job_id: UUID,
    correlation_id: str | None,
    detail: Mapping[str, Any],
) -> None:
    """Write an audit entry whose target is a job."""
    await job_store.record_audit_entry(
        conn,
        org_id=request.org_id,
        actor=request.actor,
        action=action,
        target_type="job",
        target_id=str(job_id),
        reason=request.reason,
        request_id=request.request_id,
        correlation_id=correlation_id,
        detail=detail,
    )


class LetterBatch(NamedTuple):
    """Open letters to replay or discard in one transaction."""

    request: ResolutionRequest
    letter_filter: DeadLetterFilter
    after: DeadLetterCursor
    size: int
    processed: int = 0
    """The number of letters in the batches before."""
    interval: float = 0.0
    """The seconds between two new jobs."""

    async def replay(
        self, conn: Connection
    ) -> tuple[list[ReplayedJob], dict[UUID, str], DeadLetterCursor | None]:
        """Return the new jobs, the letters that stay open with the reason, and the next cursor."""
        letters = await self._lock(conn)
        specs = [
            ReplaySpec(letter.job_id, (self.processed + n) * self.interval)
            for n, letter in enumerate(letters)
            if may_change(self.request.actor, letter.job_type)
        ]
        result = await store.replay_jobs(conn, self.request, specs)
        done = {letter: result.done[letter.job_id] for letter in letters if letter.job_id in result.done}
        successors = {letter: job.job_id for letter, job in done.items()}
        await resolve_letters(conn, self.request, Resolution.REPLAYED, successors)
        left = {
            letter.job_id: _refusal(letter.job_id, result)
            if may_change(self.request.actor, letter.job_type)
            else f"{letter.job_type} is a system job of Duly"
            for letter in letters
            if letter not in done
        }
        return [*done.values()], left, self._next_cursor(letters)

    async def discard(self, conn: Connection) -> tuple[int, DeadLetterCursor | None]:
        """Return the number of discarded letters, and the next cursor."""
        letters = await self._lock(conn)
        own = [letter for letter in letters if may_change(self.request.actor, letter.job_type)]
        await resolve_letters(conn, self.request, Resolution.DISCARDED, dict.fromkeys(own))
        return len(own), self._next_cursor(letters)

    async def _lock(self, conn: Connection) -> list[LockedLetter]:
        return await store.lock_open_letters(
            conn, self.request.org_id, self.letter_filter, after=self.after, limit=self.size
        )

    def _next_cursor(self, letters: list[LockedLetter]) -> DeadLetterCursor | None:
        return letters[-1].cursor if len(letters) == self.size else None


async def _lock_letter(conn: Connection, request: ResolutionRequest, job_id: UUID) -> LockedLetter:
    letters = await store.lock_letters(conn, request.org_id, [job_id])
    if not letters:
        raise unknown_letter(job_id)
    return letters[0]


async def _replay_job(conn: Connection, request: ResolutionRequest, spec: ReplaySpec) -> ReplayedJob:
    result = await store.replay_jobs(conn, request, [spec])
    if spec.job_id in result.done:
        return result.done[spec.job_id]
    fix = "wait for its end, or cancel it" if spec.job_id in result.held else "enqueue a new job"
    raise Conflict(_refusal(spec.job_id, result), field="job_id", fix=fix)


def _refusal(job_id: UUID, result: ReplayResult) -> str:
    if job_id not in result.held:
        return f"job {job_id} no longer exists"
    holder = result.held[job_id]
    if holder is None:
        return "another letter with its run identity comes first"
    return f"its run identity is held by {holder}"


def unknown_letter(job_id: UUID) -> UnknownJob:
    """Return the same error for an unknown job, a job of another org, and a job that did not die."""
    return UnknownJob(
        f"no dead letter of job {job_id} in this org", field="job_id", fix="check the id and the org"
    )


def already_resolved(letter: LockedLetter | DeadLetter) -> AlreadyResolved:
    """Return the error for a letter that has a resolution."""
    successor = f"; its successor is {letter.successor_job_id}" if letter.successor_job_id else ""
    return AlreadyResolved(
        f"{letter.job_id} was {letter.resolution} by {letter.resolved_by}{successor}",
        field="job_id",
        fix="use `rerun` to run the job again",
    )
