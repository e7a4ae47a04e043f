"""The registry of job types, adapters of domain records, and the storage of orgs and projects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from pydantic import ValidationError

from duly.core.errors import ConfigurationError, UnknownJobType
from duly.core.job import JobSnapshot
from duly.core.policy import CATEGORY_POLICIES, CRITICAL_QUEUE, Category, JobPolicy
from duly.db.pool import Connection
from duly.db.statements import statement
from duly.jobs.codec import Codec, check_context
from duly.jobs.failure_callbacks import FailureCallbacks
from duly.jobs.job import HandlerOptions, Job, SubjectOf

if TYPE_CHECKING:
    from duly.jobs.application import App


_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


class Registry:
    """The job types of an application by their unique names."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job[..., Any]] = {}

    def __iter__(self) -> Iterator[Job[..., Any]]:
        return iter(self._jobs.values())

    def get(self, name: str) -> Job[..., Any]:
        """Return the job type of that name; an unknown one raises."""
        if name not in self._jobs:
            declared = ", ".join(n for n in sorted(self._jobs) if not n.startswith("duly.")) or "none yet"
            raise UnknownJobType(f"{name!r} is not declared", field="job_type", fix=f"declared: {declared}")
        return self._jobs[name]

    def __contains__(self, name: str) -> bool:
        return name in self._jobs

    def add(
        self,
        app: App,
        name: str,
        handler: Callable[..., Any],
        policy: JobPolicy,
        handler_options: HandlerOptions,
        failure_callbacks: FailureCallbacks,
        subject: SubjectOf | None = None,
    ) -> Job[..., Any]:
        """Declare a handler under a name."""
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"{name!r} is not a valid name of a job type", field="name", fix="use lower_case.words"
            )
        if name in self._jobs:
            raise ConfigurationError(f"{name!r} is declared twice", field="name", fix="choose another name")
        handler_options.check(handler)
        failure_callbacks.check()
        if failure_callbacks:
            lifecycle = policy.lifecycle.model_copy(update={"requires_failed_bridge": True})
            policy = policy.model_copy(update={"lifecycle": lifecycle})
        job: Job[..., Any] = Job(
            app, name, handler, policy, Codec(handler), handler_options, failure_callbacks, subject
        )
        check_context(job.codec.context_type, is_async=job.is_async)
        self._jobs[name] = job
        return job

    def published(self) -> list[dict[str, Any]]:
        """Return every job type with its policy and JSON schema, for `duly.enqueue` in SQL."""
        return [
            {
                "job_type": j.name,
                "policy": j.policy.model_dump(mode="json"),
                "payload_schema": j.codec.schema(),
            }
            for j in self
        ]


def resolve_policy(
    category: Category | str, *, critical: bool = False, explicit: Mapping[str, Any]
) -> JobPolicy:
    """Return the policy of the category, changed by the explicit options of a job type."""
    try:
        defaults = CATEGORY_POLICIES[Category(category)]
    except ValueError:
        known = ", ".join(Category)
        raise ConfigurationError(
            f"{category!r} is not a category", field="category", fix=f"use one of {known}"
        ) from None
    given = {name: value for name, value in explicit.items() if value is not None}
    if given.get("queue") == CRITICAL_QUEUE and not critical:
        raise ConfigurationError(
            f"{CRITICAL_QUEUE} is reserved", field="queue", fix="pass critical=True if it unblocks people"
        )
    if critical:
        given["queue"] = CRITICAL_QUEUE
    try:
        # Field by field: the defaults may carry their cached JSON.
        inherited = {name: getattr(defaults, name) for name in JobPolicy.model_fields}
        return _with_expectation(JobPolicy.model_validate({**inherited, **given}))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "policy"
        raise ConfigurationError(first["msg"], field=field, fix="see the policies' reference") from None


def _with_expectation(policy: JobPolicy) -> JobPolicy:
    """Limit the default of `expected_max_runtime` to half of the timeout."""
    lifecycle = policy.lifecycle
    expected = min(lifecycle.expected_max_runtime, policy.timeout / 2)
    if "expected_max_runtime" in lifecycle.model_fields_set or expected == lifecycle.expected_max_runtime:
        return policy
    shorter = lifecycle.model_copy(update={"expected_max_runtime": expected})
    return policy.model_copy(update={"lifecycle": shorter})


async def create_org(conn: Connection, org_id: UUID, name: str) -> str | None:
    """Create an org, or rename it; return its previous name, if it existed."""
    cursor = await conn.execute(statement("orgs/create"), {"org_id": org_id, "name": name})
    row = await cursor.fetchone()
    assert row is not None
    return None if row[0] is None else str(row[0])


async def create_org_if_missing(conn: Connection, org_id: UUID, name: str) -> bool:
    """Create an org unless it exists; return whether it was created."""
    cursor = await conn.execute(statement("orgs/create_if_missing"), {"org_id": org_id, "name": name})
    return await cursor.fetchone() is not None


async def list_orgs(conn: Connection, after: UUID, *, limit: int) -> list[tuple[UUID, datetime]]:
    """Return the next orgs in the order of their ids, each with the current time of the database."""
    cursor = await conn.execute(statement("orgs/list"), {"after": after, "limit": limit})
    return [(row[0], row[1]) for row in await cursor.fetchall()]


async def create_project(conn: Connection, org_id: UUID, project_id: UUID, name: str) -> None:
    """Create a project of an org, or rename it."""
    await conn.execute(
        statement("orgs/create_project"), {"org_id": org_id, "project_id": project_id, "name": name}
    )


async def publish_job_types(conn: Connection, job_types: Sequence[dict[str, Any]]) -> None:
    """Publish job types: each with `job_type`, `policy` and `payload_schema`."""
    await conn.execute(statement("job_types/publish"), {"job_types": json.dumps(job_types)})


@dataclass(frozen=True, slots=True)
class DomainRecord:
    """A record of the application for which a job works."""

    record_id: str
    job_id: UUID
    over: bool = False
    """Whether the record has ended, so that its job is no longer needed."""
    reason: str = ""
    """Why it has ended, for operators."""


class Adapter(Protocol):
    """Synchronises one kind of domain records with their jobs, in transactions of the tenant's role."""

    name: str

    async def find(self, conn: Connection, limit: int) -> Sequence[DomainRecord]:
        """Return records of this org to compare: active ones, and those that ended recently."""

    async def settle(self, conn: Connection, record: DomainRecord, job: JobSnapshot | None) -> bool:
        """Update a record whose job has ended or was deleted by retention; return whether it changed."""
