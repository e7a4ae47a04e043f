"""A job type: a typed function that can be run later."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, Unpack

from duly.client.bridge import Bridge
from duly.client.codec import Codec
from duly.client.context import origin
from duly.client.handling import Handling
from duly.client.ids import job_id, result_id
from duly.client.options import Choices, Options
from duly.model.job import Actor, JobSpec
from duly.model.policy import JobPolicy

if TYPE_CHECKING:
    from duly.client.app import App
    from duly.client.handle import Handle
    from duly.client.sync import SyncHandle

Place = Literal["loop", "thread", "process"]
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
_NO_BRIDGE = Bridge()
SubjectOf = Callable[[Mapping[str, Any], Actor], str | None]
"""`subject(payload, actor)`: what a job is about whose caller does not say so."""


@dataclass(frozen=True, slots=True)
class Call(Generic[R_co]):
    """A job type with its arguments and options: everything needed to enqueue it."""

    job: Job[..., R_co]
    payload: str
    options: Options

    def spec(self) -> JobSpec:
        """The whole contract, completed from the surroundings; a missing field is an error."""
        options = self.options
        asked = origin(options.surroundings)
        return JobSpec(
            job_id=job_id(),
            result_id=result_id(),
            job_type=self.job.name,
            origin=asked,
            policy=options.applied_to(self.job.name, self.job.policy),
            payload=self.payload,
            subject_id=options.subject_id or self.job.about(self.payload, asked.actor),
            scheduled_for=options.scheduled_for,
            idempotency_key=options.idempotency_key,
            run_identity_hash=options.run_identity_hash,
            metadata=options.metadata,
        )


class Job(Generic[P, R]):
    """What `@app.job` makes of a function. Calling it runs it here and now, as before."""

    def __init__(
        self,
        app: App,
        name: str,
        handler: Callable[..., Any],
        policy: JobPolicy,
        codec: Codec,
        handling: Handling,
        bridge: Bridge = _NO_BRIDGE,
        subject: SubjectOf | None = None,
    ) -> None:
        self.app = app
        self.name = name
        self.handler = handler
        self.policy = policy
        self.codec = codec
        self.handling = handling
        self.bridge = bridge
        self.subject = subject
        self.is_async = inspect.iscoroutinefunction(handler)
        self.place: Place = handling.isolation or ("loop" if self.is_async else "thread")
        """Where the handler runs."""
        self._choices: Choices = {}
        self._options = Options()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function itself."""
        return self.handler(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Job {self.name}>"

    def about(self, payload: str, actor: Actor) -> str | None:
        """What a job with this payload is about, if its type says so."""
        return None if self.subject is None else self.subject(json.loads(payload), actor)

    def options(self, **choices: Unpack[Choices]) -> Job[P, R]:
        """The same job type with options for the calls that follow, added to those it has."""
        bound: Job[P, R] = object.__new__(Job)
        bound.__dict__.update(self.__dict__)
        bound._choices = {**self._choices, **choices}
        bound._options = Options.of(**bound._choices)
        return bound

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """A call to enqueue later, for `app.enqueue_many`. The payload is checked here."""
        return Call(self, self.codec.encode(args, kwargs), self._options)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Have it done. Returns as soon as the job is safely stored."""
        [handle] = await self.app.enqueue_many([self.call(*args, **kwargs)])
        return handle

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncHandle[R]:
        """Have it done, from code that is not async."""
        [handle] = self.app.enqueue_many_sync([self.call(*args, **kwargs)])
        return handle
