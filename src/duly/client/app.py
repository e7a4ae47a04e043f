"""The application: its job types, and the way to have jobs done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence, Set
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, cast, overload
from uuid import UUID

from duly.client.adapter import Adapter
from duly.client.bridge import Bridge, OnFailure, check_async
from duly.client.context import as_uuid, checked_actor, surroundings
from duly.client.ground import Ground, Grounds
from duly.client.handle import Handle
from duly.client.handling import HandlerContext, Handling, Isolation
from duly.client.job import Call, Job, SubjectOf
from duly.client.registry import Registry, resolve_policy
from duly.client.submit import submit, submit_sync
from duly.client.sync import Portal, SyncHandle
from duly.model.access import Principal
from duly.model.errors import ConfigurationError, MissingField
from duly.model.job import Actor
from duly.model.policy import Category, LifecyclePolicy, RetryPolicy
from duly.model.schema import Schema
from duly.store import audit
from duly.store import registry as known
from duly.store.pool import Connection

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=HandlerContext)


SubjectRule = Callable[[Principal, Set[str], str], Awaitable[Set[str]]]
"""`await rule(principal, subject_ids, action)`: those that they may `submit`, `read` or `change` jobs about.

It is asked once for a whole page of jobs, and about `*` where jobs are not told apart."""


class Declare(Protocol):
    """Makes a job type of a function, async or not, and keeps its types. The context is not an argument."""

    @overload
    def __call__(self, handler: Callable[Concatenate[C, P], Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[C, P], R], /) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R], /) -> Job[P, R]: ...


class App:
    """Job types, enqueueing and handles. Opens its ground when it is first needed."""

    def __init__(self, opener: Callable[[], Awaitable[Ground]]) -> None:
        self.registry = Registry()
        self.adapters: dict[str, Adapter] = {}
        """What keeps the product's own records true, by name."""
        self.schemas: list[Schema] = []
        """Tables that the application brings along: migrated with Duly's own."""
        self.told: dict[str, Any] = {}
        """What applications that are included were told, by their names."""
        self.subject_rules: list[SubjectRule] = []
        """Asked about every job that has a subject before anybody is shown or told of it; all must agree."""
        self.portal = Portal()
        self.never_retry: set[type[BaseException]] = set()
        """Errors that will not pass, whichever job type raises them: add your own."""
        self._grounds = Grounds(opener)

    async def __aenter__(self) -> Self:
        await self.ground()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def stand_on(self, opener: Callable[[], Awaitable[Ground]]) -> None:
        """Open the ground in another way: an isolated process stands where its worker stands."""
        self._grounds = Grounds(opener)

    async def ground(self) -> Ground:
        """The database and the blobs of the running event loop."""
        return await self._grounds.get()

    async def close(self) -> None:
        """Give back what the running event loop opened."""
        await self._grounds.close()

    def close_sync(self) -> None:
        """Give back what the calls without async opened."""
        self.portal.run(self.close())
        self.portal.stop()

    @asynccontextmanager
    async def tenant_session(self, org_id: UUID) -> AsyncIterator[Connection]:
        """A transaction bound to one org."""
        async with (await self.ground()).database.tenant_session(org_id) as conn:
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
    ) -> Declare:
        """Declare a function as a job type; what is not said comes from its category.

        `on_failed` is told when a job of it has failed for good, `on_dead` when that was by death, in the
        transaction that says so: `async def on_failed(failure: duly.Failure, conn) -> None`. `subject` says
        what a job is about whose caller does not: `def subject(payload, actor) -> str | None`.
        """
        policy = resolve_policy(
            category,
            critical=critical,
            queue=queue,
            priority=priority,
            retry=retry,
            timeout=timeout,
            ledger_ttl=ledger_ttl,
            schedulable=schedulable,
            lifecycle=lifecycle,
        )
        handling = Handling(isolation, memory_limit, allows_partial, dependency, tuple(never_retry))

        def declare(handler: Callable[..., Any]) -> Job[..., Any]:
            bridge = Bridge(on_failed, on_dead)
            return self.registry.add(self, name, handler, policy, handling, bridge, subject)

        return cast(Declare, declare)

    def adapt(self, adapter: Adapter) -> None:
        """Have the reconciler compare the adapter's records with their jobs."""
        name = getattr(adapter, "name", None)
        if isinstance(adapter, type) or not isinstance(name, str) or not name:
            raise ConfigurationError(
                "an object with a name is needed", field="adapter", fix='give it a name: name = "extractions"'
            )
        if name in self.adapters:
            raise ConfigurationError(f"{name!r} is taken", field="name", fix="choose another name")
        for method, arguments, fix in (
            ("find", 2, "make it `async def find(self, conn, limit)`"),
            ("settle", 3, "make it `async def settle(self, conn, record, job)`"),
        ):
            check_async(method, getattr(adapter, method, None), arguments, fix=fix)
        self.adapters[name] = adapter

    async def enqueue_many(self, calls: Sequence[Call[R]], *, conn: Any = None) -> list[Handle[R]]:
        """Enqueue calls of one org, all or none, in one statement; with `conn` in its transaction."""
        return await submit(self, calls, conn)

    def enqueue_many_sync(self, calls: Sequence[Call[R]], *, conn: Any = None) -> list[SyncHandle[R]]:
        """The same from code that is not async."""
        return [SyncHandle(handle, self.portal) for handle in submit_sync(self, calls, conn)]

    def handle(self, job_id: UUID | str, *, org_id: UUID | str | None = None) -> Handle[Any]:
        """A job by its id, in the given org or in that of the surroundings."""
        org = as_uuid("org_id", org_id) or surroundings().org_id
        if org is None:
            raise MissingField("missing", field="org_id", fix="pass org_id, or use duly.context(org_id=...)")
        found = as_uuid("job_id", job_id)
        if found is None:
            raise MissingField("missing", field="job_id", fix="pass the id that enqueue returned")
        return Handle(self, org, found)

    def handle_sync(self, job_id: UUID | str, *, org_id: UUID | str | None = None) -> SyncHandle[Any]:
        """The same for code that is not async."""
        return SyncHandle(self.handle(job_id, org_id=org_id), self.portal)

    async def create_org(
        self, org_id: UUID, name: str, *, actor: Actor | None = None, reason: str | None = None
    ) -> None:
        """Make an org known; nothing runs for unknown ones. One that is known gets the name.

        Both are audited: as done by `actor`, by whom the surroundings name, or by your software itself.
        """
        here = surroundings()
        async with (await self.ground()).database.engine_session() as conn:
            before = await known.create_org(conn, org_id, name)
            if before != name:
                await audit.record(
                    conn,
                    org_id=org_id,
                    actor=checked_actor(actor) or here.actor or Actor.system("app"),
                    action="org.created" if before is None else "org.renamed",
                    target_type="org",
                    target_id=str(org_id),
                    reason=reason,
                    request_id=here.request_id,
                    correlation_id=here.correlation_id or here.request_id,
                    detail={"name": name} if before is None else {"name": name, "before": before},
                )

    async def create_project(self, org_id: UUID, project_id: UUID, name: str) -> None:
        """Make a project of an org known."""
        async with (await self.ground()).database.engine_session() as conn:
            await known.create_project(conn, org_id, project_id, name)

    async def publish(self) -> None:
        """Make the job types known to plain SQL: `select duly.enqueue(...)`."""
        async with (await self.ground()).database.engine_session() as conn:
            await known.publish_job_types(conn, self.registry.published())
