"""The job types of an application, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from duly.client.bridge import Bridge
from duly.client.codec import Codec
from duly.client.handling import Handling, check_context
from duly.client.job import Job, SubjectOf
from duly.model.errors import ConfigurationError, UnknownJobType
from duly.model.policy import CRITICAL, DEFAULTS, Category, JobPolicy

if TYPE_CHECKING:
    from duly.client.app import App

_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


class Registry:
    """Names are unique; an unknown one raises."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job[..., Any]] = {}

    def __iter__(self) -> Iterator[Job[..., Any]]:
        return iter(self._jobs.values())

    def get(self, name: str) -> Job[..., Any]:
        """The job type of that name."""
        if name not in self._jobs:
            own = [known for known in sorted(self._jobs) if not known.startswith("duly.")]
            known = ", ".join(own) or "none yet"
            raise UnknownJobType(f"{name!r} is not declared", field="job_type", fix=f"known are: {known}")
        return self._jobs[name]

    def __contains__(self, name: str) -> bool:
        return name in self._jobs

    def add(
        self,
        app: App,
        name: str,
        handler: Callable[..., Any],
        policy: JobPolicy,
        handling: Handling,
        bridge: Bridge,
        subject: SubjectOf | None = None,
    ) -> Job[..., Any]:
        """Declare a handler under its name."""
        if not _NAME.fullmatch(name):
            raise ConfigurationError(f"{name!r} is no job type", field="name", fix="use lower_case.words")
        if name in self._jobs:
            raise ConfigurationError(f"{name!r} is declared twice", field="name", fix="choose another name")
        handling.check(handler)
        bridge.check()
        if bridge:
            told = policy.lifecycle.model_copy(update={"requires_failed_bridge": True})
            policy = policy.model_copy(update={"lifecycle": told})
        job: Job[..., Any] = Job(app, name, handler, policy, Codec(handler), handling, bridge, subject)
        check_context(job.codec.context_type, is_async=job.is_async)
        self._jobs[name] = job
        return job

    def published(self) -> list[dict[str, Any]]:
        """Every job type as other languages see it."""
        return [
            {
                "job_type": j.name,
                "policy": j.policy.model_dump(mode="json"),
                "payload_schema": j.codec.schema(),
            }
            for j in self
        ]


def resolve_policy(category: Category | str, *, critical: bool, **explicit: Any) -> JobPolicy:
    """The category's defaults with what the job type says explicitly."""
    try:
        defaults = DEFAULTS[Category(category)]
    except ValueError:
        known = ", ".join(Category)
        raise ConfigurationError(
            f"{category!r} is no category", field="category", fix=f"one of {known}"
        ) from None
    said = {name: value for name, value in explicit.items() if value is not None}
    if said.get("queue") == CRITICAL and not critical:
        raise ConfigurationError(
            f"{CRITICAL} is reserved", field="queue", fix="say critical=True if it unblocks people"
        )
    if critical:
        said["queue"] = CRITICAL
    try:
        # Field by field: the defaults may carry their cached JSON beside them.
        given = {name: getattr(defaults, name) for name in JobPolicy.model_fields}
        return _with_expectation(JobPolicy.model_validate({**given, **said}))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "policy"
        raise ConfigurationError(first["msg"], field=field, fix="see the policies' reference") from None


def _with_expectation(policy: JobPolicy) -> JobPolicy:
    """Who does not say how long it takes expects half of the time-out at most."""
    lifecycle = policy.lifecycle
    expected = min(lifecycle.expected_max_runtime, policy.timeout / 2)
    if "expected_max_runtime" in lifecycle.model_fields_set or expected == lifecycle.expected_max_runtime:
        return policy
    shorter = lifecycle.model_copy(update={"expected_max_runtime": expected})
    return policy.model_copy(update={"lifecycle": shorter})
