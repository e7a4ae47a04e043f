"""Job types and their calls."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, Unpack

from duly.core.errors import ConfigurationError
from duly.core.job import Actor, JobSpec
from duly.core.policy import JobPolicy
from duly.jobs.codec import Codec
from duly.jobs.enqueue_options import EnqueueKeywords, EnqueueOptions, new_ids
from duly.jobs.failure_callbacks import FailureCallbacks
from duly.jobs.request_context import RequestContext

if TYPE_CHECKING:
    from duly.jobs.application import App
    from duly.jobs.handle import Handle, SyncHandle

ExecutionMode = Literal["loop", "thread", "process"]
"""Where a handler runs."""
Isolation = Literal["process"]
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
_NO_CALLBACKS = FailureCallbacks()
SubjectOf = Callable[[Mapping[str, Any], Actor], str | None]
"""`subject(payload, actor)` returns the subject of a job that is enqueued without one."""


@dataclass(frozen=True, slots=True)
class HandlerOptions:
    """The options of a handler for the worker; they are not stored with its jobs."""

    isolation: Isolation | None = None
    memory_limit: int | None = None
    """Bytes that the isolated process may use."""
    allows_partial: bool = False
    """Whether a job with failed chunks may complete as partially succeeded."""
    dependency: str | None = None
    """The dependency whose retry budget this job type spends; its own if None."""
    never_retry: tuple[type[Exception], ...] = ()
    """Permanent errors."""

    def check(self, handler: Callable[..., Any]) -> None:
        """Refuse options that cannot work."""
        errors: tuple[Any, ...] = self.never_retry
        for error in errors:
            if not (isinstance(error, type) and issubclass(error, BaseException)):
                raise ConfigurationError(
                    f"{error!r} is not an exception class", field="never_retry", fix="pass exception classes"
                )
        if self.isolation not in (None, "process"):
            raise ConfigurationError(
                f"{self.isolation!r} is unknown", field="isolation", fix='use "process", or leave it out'
            )
        if self.memory_limit is not None and self.isolation is None:
            raise ConfigurationError(
                "applies to isolated processes only", field="memory_limit", fix='add isolation="process"'
            )
        if self.memory_limit is not None and self.memory_limit < 64 * 2**20:
            raise ConfigurationError(
                f"{self.memory_limit} bytes are too few for Python",
                field="memory_limit",
                fix="allow 64 MiB or more",
            )
        if self.isolation == "process" and "<locals>" in handler.__qualname__:
            raise ConfigurationError(
                f"{handler.__qualname__} cannot be imported by another process",
                field="isolation",
                fix="define the handler at the top of its module",
            )


@dataclass(slots=True, eq=False)
class Call(Generic[R_co]):
    """A job type with arguments and options, ready to be enqueued."""

    job: Job[..., R_co]
    payload: str
    options: EnqueueOptions

    def spec(self) -> JobSpec:
        """Return the specification, completed by the request context; a missing org or actor raises."""
        [spec] = job_specs([self], new_ids(1))
        return spec

    def _resolved(self) -> tuple[RequestContext, JobPolicy]:
        context = self.options.context.completed_by(self.job.app.request_context())
        return context, self.options.apply_to(self.job.name, self.job.policy)


def job_specs(calls: Sequence[Call[Any]], ids: Iterable[tuple[str, str]]) -> list[JobSpec]:
    """Return the specifications of calls, completed by the request context; a missing org or actor raises."""
    specs = []
    job, options = calls[0].job, calls[0].options
    context, policy = calls[0]._resolved()
    for call, (job_id, result_id) in zip(calls, ids, strict=True):
        # The calls of a batch mostly differ in their payloads only.
        if call.options is not options or call.job is not job:
            job, options = call.job, call.options
            context, policy = call._resolved()
        origin = context.origin()
        specs.append(
            JobSpec(
                job_id,
                result_id,
                job.name,
                origin,
                policy,
                call.payload,
                None,
                None,
                options.subject_id or job.derive_subject(call.payload, origin.actor),
                options.scheduled_for,
                options.idempotency_key,
                options.run_identity_hash,
                options.metadata,
            )
        )
    return specs


class Job(Generic[P, R]):
    """A job type, made by `@app.job`. Calling it runs the function itself."""

    def __init__(
        self,
        app: App,
        name: str,
        handler: Callable[..., Any],
        policy: JobPolicy,
        codec: Codec,
        handler_options: HandlerOptions,
        failure_callbacks: FailureCallbacks = _NO_CALLBACKS,
        subject: SubjectOf | None = None,
    ) -> None:
        self.app = app
        self.name = name
        self.handler = handler
        self.policy = policy
        self.codec = codec
        self.handler_options = handler_options
        self.failure_callbacks = failure_callbacks
        self.subject = subject
        self.is_async = inspect.iscoroutinefunction(handler)
        self.execution_mode: ExecutionMode = handler_options.isolation or (
            "loop" if self.is_async else "thread"
        )
        self._keywords: EnqueueKeywords = {}
        self._options = EnqueueOptions()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function here and now."""
        return self.handler(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Job {self.name}>"

    def derive_subject(self, payload: str, actor: Actor) -> str | None:
        """Return the subject of a job with this payload, if the job type defines one."""
        return None if self.subject is None else self.subject(json.loads(payload), actor)

    def options(self, **keywords: Unpack[EnqueueKeywords]) -> Job[P, R]:
        """Return the job type with options for the calls that follow, added to those it has.

        ```python
        await report.options(priority=5, idempotency_key="2026-W09").enqueue("DE")
        ```
        """
        bound: Job[P, R] = object.__new__(Job)
        bound.__dict__.update(self.__dict__)
        bound._keywords = {**self._keywords, **keywords}
        bound._options = EnqueueOptions.of(**bound._keywords)
        return bound

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Return a call for `app.enqueue_many`. The payload is checked here."""
        return Call(self, self.codec.encode(args, kwargs), self._options)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Enqueue a job and return its handle as soon as the job is committed."""
        [handle] = await self.app.enqueue_many([self.call(*args, **kwargs)])
        return handle

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncHandle[R]:
        """Enqueue a job from synchronous code."""
        [handle] = self.app.enqueue_many_sync([self.call(*args, **kwargs)])
        return handle
