"""The application below the engine: its job types, and how they are enqueued."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence, Set
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, cast, overload
from uuid import UUID

from duly.core.errors import ConfigurationError, MissingField
from duly.core.job import Actor
from duly.core.policy import Category, LifecyclePolicy, RetryPolicy
from duly.core.principal import Principal
from duly.core.schema import Schema
from duly.db.pool import Connection
from duly.jobs import registry
from duly.jobs import store as job_store
from duly.jobs.codec import HandlerContext
from duly.jobs.enqueue import submit, submit_sync
from duly.jobs.failure_callbacks import FailureCallbacks, OnFailure, check_async_callable
from duly.jobs.handle import Handle, Portal, SyncHandle
from duly.jobs.job import Call, HandlerOptions, Isolation, Job, SubjectOf
from duly.jobs.registry import Adapter, Registry, resolve_policy
from duly.jobs.request_context import RequestContext, as_uuid, checked_actor, current_context
from duly.jobs.resources import LoopResources, Resources

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=HandlerContext)


SubjectRule = Callable[[Principal, Set[str], str], Awaitable[Set[str]]]
"""`await rule(principal, subject_ids, action)` returns the subjects whose jobs the principal may `submit`,
`read` or `change`.

It is called once for a whole page of jobs, and with `*` where jobs are not distinguished."""


class JobDecorator(Protocol):
    """Turns a function into a job type, and keeps its types. The context is not an argument of the job."""

    @overload
    def __call__(self, handler: Callable[Concatenate[C, P], Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[C, P], R], /) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R], /) -> Job[P, R]: ...


class App:
    """Job types, enqueueing and handles. Its resources are opened on first use."""

    def __init__(self, opener: Callable[[], Awaitable[Resources]]) -> None:
        self.registry = Registry()
        self.adapters: dict[str, Adapter] = {}
        """The adapters that synchronise domain records with their jobs, by name."""
        self.schemas: list[Schema] = []
        """Database schemas of applications, migrated with that of Duly."""
        self.included: dict[str, Any] = {}
        """The options of included applications, by the name of the application."""
        self.subject_rules: list[SubjectRule] = []
        """Rules that decide which jobs with a subject a principal may access; all must agree."""
        self.portal = Portal()
        self.never_retry: set[type[BaseException]] = set()
        """Permanent errors of all job types: add your own."""
        self._loop_resources = LoopResources(opener)

    async def __aenter__(self) -> Self:
        await self.resources()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def open_with(self, opener: Callable[[], Awaitable[Resources]]) -> None:
        """Replace the function that opens resources: an isolated process uses those of its worker."""
        self._loop_resources = LoopResources(opener)

    async def resources(self) -> Resources:
        """Return the resources of the running event loop: database, blobs and the enqueue batcher."""
        return await self._loop_resources.get()

    async def close(self) -> None:
        """Close the resources of the running event loop."""
        await self._loop_resources.close()

    def close_sync(self) -> None:
        """Close the resources of synchronous calls."""
        self.portal.run(self.close())
        self.portal.stop()

    def request_context(self) -> RequestContext:
        """Return the context in which jobs are enqueued."""
        return current_context()

    @asynccontextmanager
    async def tenant_session(self, org_id: UUID) -> AsyncIterator[Connection]:
        """Open a transaction that reads and writes the rows of this org only."""
        async with (await self.resources()).database.tenant(org_id) as conn:
            yield conn

    def job(
        self,
        name: str,
        *,
        category: Category | str = Category.DEFAULT,
        queue: str | None = None,
        critical: bool = False,
        priority: int | None = None,
        retry: RetryPolicy | None = None,
        timeout: timedelta | None = None,
        ledger_ttl: timedelta | None = None,
        schedulable: bool | None = None,
        lifecycle: LifecyclePolicy | None = None,
        isolation: Isolation | None = None,
        memory_limit: int | None = None,
        allows_partial: bool = False,
        dependency: str | None = None,
        never_retry: Sequence[type[Exception]] = (),
        subject: SubjectOf | None = None,
        on_failed: OnFailure | None = None,
        on_dead: OnFailure | None = None,
    ) -> JobDecorator:
        """Declare a function, async or not, as a job type.

        ```python
        @app.job("report.build", retry=RetryPolicy(max_attempts=3), timeout=timedelta(minutes=5))
        async def build(ctx: Context, region: str) -> Report: ...


        handle = await build.enqueue("DE")
        ```

        The arguments of the function are the payload; a first argument annotated as `Context`, or as
        `SyncContext` in a function that is not async, receives the context of the running job.

        - `name`: the unique name of the job type, in `lower_case.words`; stored with every job.
        - `category`: gives the job type its queue and the defaults of all options below.
        - `queue`: the queue of its jobs, such as `q:planning`.
        - `critical`: use the queue `q:critical`, for jobs that unblock people.
        - `priority`: from -1000 to 1000; higher runs first.
        - `retry`: the number of attempts and the delays between them.
        - `timeout`: the longest time of one attempt; the worker stops it afterwards.
        - `ledger_ttl`: how long an idempotency key returns the same job.
        - `schedulable`: whether its jobs can be delayed with `scheduled_for`, and run by schedules.
        - `lifecycle`: when an active job is stale, and how the reconciler repairs it.
        - `isolation`: `"process"` runs the handler in a process of its own.
        - `memory_limit`: the bytes that this process may use.
        - `allows_partial`: complete a job with failed chunks as partially succeeded, instead of failing it.
        - `dependency`: the dependency whose retry budget its retries spend; by default one of its own.
        - `never_retry`: exceptions that fail the job at once.
        - `subject`: `def subject(payload, actor) -> str | None` returns the subject of a job that is enqueued
          without one.
        - `on_failed`: `async def on_failed(failure: duly.Failure, conn) -> None` is called when a job has
          failed permanently, in the transaction that ends it.
        - `on_dead`: the same for jobs that used up their attempts; by default `on_failed`.
        """
        policy = resolve_policy(
            category,
            critical=critical,
            explicit={
                "queue": queue,
                "priority": priority,
                "retry": retry,
                "timeout": timeout,
                "ledger_ttl": ledger_ttl,
                "schedulable": schedulable,
                "lifecycle": lifecycle,
            },
        )
        options = HandlerOptions(isolation, memory_limit, allows_partial, dependency, tuple(never_retry))

        def declare(handler: Callable[..., Any]) -> Job[..., Any]:
            callbacks = FailureCallbacks(on_failed, on_dead)
            return self.registry.add(self, name, handler, policy, options, callbacks, subject)

        return cast(JobDecorator, declare)

    def adapt(self, adapter: Adapter) -> None:
        """Synchronise the domain records of an adapter with their jobs."""
        name = getattr(adapter, "name", None)
        if isinstance(adapter, type) or not isinstance(name, str) or not name:
            raise ConfigurationError(
                "must be an object with a name", field="adapter", fix='give it a name: name = "extractions"'
            )
        if name in self.adapters:
            raise ConfigurationError(f"{name!r} is already in use", field="name", fix="choose another name")
        for method, arguments, fix in (
            ("find", 2, "make it `async def find(self, conn, limit)`"),
            ("settle", 3, "make it `async def settle(self, conn, record, job)`"),
        ):
            check_async_callable(method, getattr(adapter, method, None), arguments, fix=fix)
        self.adapters[name] = adapter

    async def enqueue_many(self, calls: Sequence[Call[R]], *, conn: Any = None) -> list[Handle[R]]:
        """Enqueue calls of one org, all or none, in one statement; with `conn`, in its transaction.

        ```python
        handles = await app.enqueue_many([build.call(region) for region in ("DE", "FR")])
        ```
        """
        return await submit(self, calls, conn)

    def enqueue_many_sync(self, calls: Sequence[Call[R]], *, conn: Any = None) -> list[SyncHandle[R]]:
        """Enqueue calls of one org, all or none, from synchronous code."""
        return [SyncHandle(handle, self.portal) for handle in submit_sync(self, calls, conn)]

    def handle(self, job_id: UUID | str, *, org_id: UUID | str | None = None) -> Handle[Any]:
        """Return the handle of a job, in the given org or that of the current context."""
        org = as_uuid("org_id", org_id) or self.request_context().org_id
        if org is None:
            raise MissingField("missing", field="org_id", fix="pass org_id, or use duly.context(org_id=...)")
        found = as_uuid("job_id", job_id)
        if found is None:
            raise MissingField("missing", field="job_id", fix="pass the id that enqueue returned")
        return Handle(self, org, found)

    def handle_sync(self, job_id: UUID | str, *, org_id: UUID | str | None = None) -> SyncHandle[Any]:
        """Return the handle of a job for synchronous code."""
        return SyncHandle(self.handle(job_id, org_id=org_id), self.portal)

    async def create_org(
        self, org_id: UUID, name: str, *, actor: Actor | None = None, reason: str | None = None
    ) -> None:
        """Create an org, or rename it; jobs of unknown orgs are refused.

        Both are audited, with `actor`, the actor of the current context, or your software as the author.
        """
        context = current_context()
        async with (await self.resources()).database.engine() as conn:
            before = await registry.create_org(conn, org_id, name)
            if before != name:
                await job_store.record_audit_entry(
                    conn,
                    org_id=org_id,
                    actor=checked_actor(actor) or context.actor or Actor.system("app"),
                    action="org.created" if before is None else "org.renamed",
                    target_type="org",
                    target_id=str(org_id),
                    reason=reason,
                    request_id=context.request_id,
                    correlation_id=context.correlation_id or context.request_id,
                    detail={"name": name} if before is None else {"name": name, "before": before},
                )

    async def create_project(self, org_id: UUID, project_id: UUID, name: str) -> None:
        """Create a project of an org, or rename it."""
        async with (await self.resources()).database.engine() as conn:
            await registry.create_project(conn, org_id, project_id, name)

    async def publish(self) -> None:
        """Publish the job types to plain SQL: `select duly.enqueue(...)`."""
        async with (await self.resources()).database.engine() as conn:
            await registry.publish_job_types(conn, self.registry.published())
