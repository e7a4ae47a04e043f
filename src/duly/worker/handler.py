"""Run one handler: decode the payload, call, turn the result or error into an ending. It never raises."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pydantic import ValidationError

from duly.blobs import BlobRef
from duly.core import outcome
from duly.core.error_report import describe_error
from duly.core.errors import ConfigurationError, ContractError, LeaseLost, NotFound
from duly.core.outcome import AttemptOutcome, Canceled, Completed, ErrorInfo, Failed, Lost, Retried, Snoozed
from duly.core.redaction import printable, redact
from duly.jobs.codec import HandlerContext
from duly.jobs.job import Job
from duly.jobs.request_context import RequestContext, enter_context
from duly.worker.context.context import Context
from duly.worker.context.run import JobRun
from duly.worker.context.services import HandlerServices
from duly.worker.context.sync_context import SyncContext
from duly.worker.isolation.threads import ThreadPool

log = logging.getLogger("duly.worker")
_MAX_CODE_LENGTH = 200
_MAX_CAUSES = 10
_NEVER_RETRY: tuple[type[BaseException], ...] = (
    ConfigurationError,
    ContractError,
    NotFound,
    ValidationError,
    PermissionError,
)
"""Validation and ownership errors: another attempt would fail the same way."""


async def run_handler(run: JobRun, services: HandlerServices, threads: ThreadPool) -> AttemptOutcome:
    """Run the handler and return how it ended."""
    try:
        enter_context(partial(_request_context, run))
        payload = run.job.payload if run.job.payload_ref is None else await _load_payload(run, services)
        value = await _call(run, services, threads, run.kind.codec.decode(payload))
        ending = (
            outcome.DONE if value is None and run.is_plain else await _ending_of_value(run, services, value)
        )
    except BaseException as error:  # whatever a handler raises is an outcome, never the worker's end
        ending = ending_of_error(error, run.kind)
    if run.forced is not None:
        return run.forced
    if run.cancel is not None and isinstance(ending, Canceled):
        return run.cancel
    return ending


def _request_context(run: JobRun) -> RequestContext:
    job = run.job
    return RequestContext(
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


async def _load_payload(run: JobRun, services: HandlerServices) -> bytes:
    assert run.job.payload_ref is not None
    run.start_clock()
    return await services.blobs.get(BlobRef.parse(run.job.payload_ref), org_id=run.job.org_id)


def _call(
    run: JobRun, services: HandlerServices, threads: ThreadPool, arguments: dict[str, Any]
) -> Awaitable[Any]:
    kind, handler = run.kind, run.kind.handler
    context: tuple[HandlerContext, ...] = ()
    if kind.codec.context_type is not None:
        context = (_handler_context(run, services),)
    if kind.is_async:
        run.start_clock()
        return handler(*context, **arguments)  # type: ignore[no-any-return]
    variables = contextvars.copy_context()

    def on_a_thread() -> Any:
        # Its time starts when it has a thread.
        run.start_clock()
        return variables.run(handler, *context, **arguments)

    run.stop_clock()
    return threads.submit(on_a_thread, f"job {run.job.job_id}")


def _handler_context(run: JobRun, services: HandlerServices) -> HandlerContext:
    context_type = run.kind.codec.context_type
    context = Context(run, services)
    if context_type in (Context, HandlerContext):
        return context
    if context_type is SyncContext:
        return SyncContext(context, asyncio.get_running_loop())
    raise ConfigurationError(
        f"unknown context type {context_type}", field="ctx", fix="annotate it as Context or SyncContext"
    )


async def _ending_of_value(run: JobRun, services: HandlerServices, value: Any) -> AttemptOutcome:
    if isinstance(value, outcome.HandlerSignal):
        return ending_of_verdict(value, run.kind)
    if run.failures and not run.counts.get("succeeded"):
        first = run.first_failure or ErrorInfo("chunks.failed", "no chunk succeeded")
        error = replace(first, message=f"every chunk failed: {first.message}")
        return Retried(error, dependency=run.kind.handler_options.dependency)
    if run.chunks_offered and not run.chunks_entered:
        raise ContractError(
            f"none of the {run.chunks_offered} chunks was entered",
            field="chunks",
            fix="work inside `async with chunk:`",
        )
    result, reference = await services.store_value(run.job.org_id, run.kind.codec.encode_result(value))
    return Completed(result, reference, bool(run.failures), dict(run.counts), run.failures)


def ending_of_error(error: BaseException, kind: Job[..., Any]) -> AttemptOutcome:
    """Return the ending for an error of a handler: retry, unless its class is registered as final."""
    if isinstance(error, outcome.HandlerSignal):
        return ending_of_verdict(error, kind)
    if isinstance(error, LeaseLost):
        return Lost(error.message)
    if isinstance(error, MemoryError):
        # Describing it would walk frames that still hold what filled the memory.
        short = ErrorInfo("handler.memory", "the handler ran out of memory", "MemoryError")
        return Retried(short, dependency=kind.handler_options.dependency)
    info = describe_error(error, job_type=kind.name)
    never_retry = (*_NEVER_RETRY, *kind.handler_options.never_retry, *kind.app.never_retry)
    if isinstance(error, never_retry):
        return Failed(info)
    if isinstance(error, asyncio.CancelledError):
        info = ErrorInfo("handler.cancelled", "the handler cancelled itself", "CancelledError")
    return Retried(info, after=retry_after(error), dependency=kind.handler_options.dependency)


def ending_of_verdict(decision: outcome.HandlerSignal, kind: Job[..., Any]) -> AttemptOutcome:
    """Return the ending that the handler raised or returned explicitly."""
    match decision:
        case outcome.Snooze():
            return Snoozed(decision.delay, redact(decision.reason))
        case outcome.Cancel():
            return Canceled("worker", redact(decision.reason) or "canceled by the handler")
        case outcome.Fail():
            return Failed(_error_info(decision.code, decision), decision.blocked)
        case outcome.Retry():
            dependency = decision.dependency or kind.handler_options.dependency
            return Retried(_error_info(decision.code, decision), decision.after, dependency)
        case _:
            return Failed(_error_info("handler.verdict", decision))


def _error_info(code: str, decision: outcome.HandlerSignal) -> ErrorInfo:
    cause = decision.__cause__ or decision.__context__
    described = cause is not None or decision.__traceback__
    context = describe_error(decision, job_type="").context if described else {}
    code = printable(str(code))[:_MAX_CODE_LENGTH] or "handler.verdict"
    return ErrorInfo(code, redact(str(decision)) or "no reason was given", type(decision).__name__, context)


def retry_after(error: BaseException) -> timedelta | None:
    """Return the `Retry-After` of the HTTP response that an error or one of its causes carries."""
    for part in _causes(error):
        try:
            headers = getattr(getattr(part, "response", None), "headers", None) or getattr(
                part, "headers", None
            )
            value = headers.get("retry-after") or headers.get("Retry-After") if headers is not None else None
            if value is not None:
                seconds = outcome.parse_retry_after(str(value), datetime.now(UTC))
                return None if seconds is None else timedelta(seconds=seconds)
        except Exception:  # a property of a foreign class may raise anything
            log.debug("no Retry-After can be read from %s", type(part).__name__)
    return None


def _causes(error: BaseException) -> Iterable[BaseException]:
    part: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if part is None:
            return
        yield part
        part = part.__cause__ or part.__context__
