"""One attempt: decode, call, normalise. It reads as a pipeline and never raises."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from duly.blobs import BlobRef
from duly.client.context import Surroundings, enter
from duly.client.handling import HandlerContext
from duly.model.errors import ConfigurationError, ContractError
from duly.model.outcome import Canceled, Done, Ending, ErrorInfo, Retry
from duly.model.verdict import Verdict
from duly.worker.classify import ending_of_error, ending_of_verdict
from duly.worker.context import Context
from duly.worker.run import Run
from duly.worker.sync_context import SyncContext
from duly.worker.workshop import Workshop

_DONE = Done()


class Threads(Protocol):
    """Where handlers run that are not async."""

    def submit(self, work: Callable[[], Any], name: str) -> asyncio.Future[Any]:
        """Run it on a thread."""


async def perform(run: Run, shop: Workshop, threads: Threads) -> Ending:
    """Run the handler; how it ended."""
    try:
        enter(partial(_surroundings, run))
        payload = run.job.payload if run.job.payload_ref is None else await _payload(run, shop)
        value = await _call(run, shop, threads, run.kind.codec.decode(payload))
        ending = _DONE if value is None and run.is_plain else await _ending(run, shop, value)
    except BaseException as error:  # whatever a handler raises is an outcome, never the worker's end
        ending = ending_of_error(error, run.kind)
    if run.forced is not None:
        return run.forced
    if run.cancel is not None and isinstance(ending, Canceled):
        return run.cancel
    return ending


async def _ending(run: Run, shop: Workshop, value: Any) -> Ending:
    if isinstance(value, Verdict):
        return ending_of_verdict(value, run.kind)
    return await _done(run, shop, value)


def _surroundings(run: Run) -> Surroundings:
    job = run.job
    return Surroundings(
        org_id=job.org_id,
        actor=job.actor,
        project_id=job.project_id,
        request_id=job.request_id,
        correlation_id=job.correlation_id,
        traceparent=job.traceparent,
        parent_id=job.job_id,
        job_type=job.job_type,
        attempt=job.attempt,
    )


async def _payload(run: Run, shop: Workshop) -> bytes:
    assert run.job.payload_ref is not None
    run.start_clock()
    return await shop.blobs.get(BlobRef.parse(run.job.payload_ref), org_id=run.job.org_id)


def _call(run: Run, shop: Workshop, threads: Threads, arguments: dict[str, Any]) -> Awaitable[Any]:
    kind, handler = run.kind, run.kind.handler
    given: tuple[HandlerContext, ...] = ()
    if kind.codec.context_type is not None:
        given = (_context(run, shop),)
    if kind.is_async:
        run.start_clock()
        return handler(*given, **arguments)  # type: ignore[no-any-return]
    inside = contextvars.copy_context()

    def on_a_thread() -> Any:
        # Its time starts when it has a thread.
        run.start_clock()
        return inside.run(handler, *given, **arguments)

    run.stop_clock()
    return threads.submit(on_a_thread, f"job {run.job.job_id}")


def _context(run: Run, shop: Workshop) -> HandlerContext:
    wanted = run.kind.codec.context_type
    context = Context(run, shop)
    if wanted in (Context, HandlerContext):
        return context
    if wanted is SyncContext:
        return SyncContext(context, asyncio.get_running_loop())
    raise ConfigurationError(
        f"{wanted} cannot be made", field="ctx", fix="annotate it as Context or SyncContext"
    )


def _every_chunk_failed(run: Run) -> ErrorInfo:
    first = run.first_failure or ErrorInfo("chunks.failed", "no chunk succeeded")
    return replace(first, message=f"every chunk failed: {first.message}")


async def _done(run: Run, shop: Workshop, value: Any) -> Ending:
    if run.failures and not run.counts.get("succeeded"):
        return Retry(_every_chunk_failed(run), dependency=run.kind.handling.dependency)
    if run.chunks_offered and not run.chunks_entered:
        raise ContractError("no chunk was worked on", field="chunks", fix="work inside `async with chunk:`")
    result, reference = await shop.stored(run.job.org_id, run.kind.codec.encode_result(value))
    return Done(result, reference, bool(run.failures), run.counts, tuple(run.failures))
