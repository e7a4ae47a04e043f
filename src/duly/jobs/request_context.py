"""The request context: org, actor and trace of the current task, and their fields in log records."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any
from uuid import UUID

from duly.core.errors import ContractError, MissingField
from duly.core.job import Actor, Origin

_MAX_TEXT_LENGTH = 500
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True)
class RequestContext:
    """The org, the actor and the trace of the current task; fields may be missing until a job is enqueued."""

    org_id: UUID | None = None
    actor: Actor | None = None
    project_id: UUID | None = None
    request_id: str | None = None
    correlation_id: str | None = None
    traceparent: str | None = None
    parent_id: UUID | None = None
    """The job whose handler is running."""
    job_type: str | None = None
    attempt: int | None = None
    """Type and attempt of that job, for log records."""

    def completed_by(self, outer: RequestContext) -> RequestContext:
        """Return this context with its missing fields taken from another one."""
        if outer is EMPTY_CONTEXT:
            return self
        if self is EMPTY_CONTEXT or self == EMPTY_CONTEXT:
            return outer
        pairs = zip(_values(self), _values(outer), strict=True)
        return RequestContext(*[theirs if mine is None else mine for mine, theirs in pairs])

    def origin(self) -> Origin:
        """Return the origin of a job enqueued here; a missing org or actor raises."""
        if self.request_id is None:
            return replace(self, request_id=f"req-{os.urandom(16).hex()}").origin()
        return self._origin

    @cached_property
    def _origin(self) -> Origin:
        if self.org_id is None:
            raise MissingField(
                "missing", field="org_id", fix="enqueue inside duly.context(org_id=..., actor=...)"
            )
        if self.actor is None:
            raise MissingField(
                "missing", field="actor", fix="enqueue inside duly.context(actor=Actor.user(...))"
            )
        assert self.request_id is not None
        return Origin(
            org_id=self.org_id,
            actor=self.actor,
            request_id=self.request_id,
            correlation_id=self.correlation_id or self.request_id,
            project_id=self.project_id,
            traceparent=self.traceparent,
            parent_id=self.parent_id,
        )


EMPTY_CONTEXT = RequestContext()
_values = attrgetter(*(field.name for field in fields(RequestContext)))
_current: ContextVar[RequestContext | Callable[[], RequestContext]] = ContextVar(
    "duly_request_context", default=EMPTY_CONTEXT
)


def enter_context(inner: Callable[[], RequestContext]) -> None:
    """Set the context for the rest of the running task or thread; computed when it is first needed."""
    _current.set(inner)


def current_context() -> RequestContext:
    """Return the context of the innermost `context(...)`."""
    current = _current.get()
    if not isinstance(current, RequestContext):
        current = current()
        _current.set(current)
    return current


class ContextScope:
    """Like `context`, for a context that is already checked: cheap enough for every HTTP request."""

    def __init__(self, inner: RequestContext) -> None:
        self._inner = inner

    def __enter__(self) -> None:
        self._token = _current.set(self._inner)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


@contextmanager
def context(
    *,
    org_id: UUID | str | None = None,
    actor: Actor | None = None,
    project_id: UUID | str | None = None,
    request_id: str | None = None,
    correlation_id: str | None = None,
    traceparent: str | None = None,
) -> Iterator[None]:
    """Set org, actor and request of everything enqueued inside. Contexts nest; inner values win.

    ```python
    with duly.context(org_id=org_id, actor=Actor.user("anna")):
        await report.enqueue("DE")
    ```
    """
    outer = current_context()
    inner = RequestContext(
        org_id=as_uuid("org_id", org_id),
        actor=checked_actor(actor),
        project_id=as_uuid("project_id", project_id),
        request_id=checked_text("request_id", request_id)
        or outer.request_id
        or f"req-{os.urandom(16).hex()}",
        correlation_id=checked_text("correlation_id", correlation_id),
        traceparent=checked_traceparent(traceparent),
    )
    token = _current.set(inner.completed_by(outer))
    try:
        yield
    finally:
        _current.reset(token)


def as_uuid(field: str, value: UUID | str | None) -> UUID | None:
    """Return a uuid, or parse it from its text."""
    if value is None or isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise ContractError(f"{value!r} is not a uuid", field=field, fix="pass a uuid or its text") from None


def checked_actor(value: Actor | None) -> Actor | None:
    """Return an actor with a valid id, or raise."""
    if value is None:
        return None
    if not isinstance(value, Actor):
        raise ContractError(
            f"{value!r} is not an Actor", field="actor", fix="use Actor.user(...), .api_key, .system"
        )
    checked_text("actor.id", value.id)
    return value


def checked_text(field: str, value: Any) -> str | None:
    """Return a short text that PostgreSQL can store, or raise."""
    if value is None:
        return None
    if not isinstance(value, str) or "\0" in value or not _is_text(value):
        raise ContractError("not a text that can be stored", field=field, fix="pass a str without NUL")
    if not value:
        raise ContractError("empty", field=field, fix="say something")
    if len(value) > _MAX_TEXT_LENGTH:
        raise ContractError(f"longer than {_MAX_TEXT_LENGTH} characters", field=field, fix="shorten it")
    return value


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def checked_traceparent(value: str | None) -> str | None:
    """Return a W3C traceparent, or raise."""
    if value is not None and not _TRACEPARENT.fullmatch(value):
        raise ContractError(
            f"{value!r} is not a W3C traceparent", field="traceparent", fix="pass the header unchanged"
        )
    return value


_JOB_FIELDS = ("job_type", "attempt")


class LogContextFilter(logging.Filter):
    """Adds the ids of the request or the job to each record: `handler.addFilter(LogContextFilter())`.

    Fields that a record already has, such as by `extra=`, stay.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the ids, and let every record pass."""
        given = record.__dict__
        # A record about another job has the ids of that job.
        left_out = _JOB_FIELDS if given.get("job_id") else ()
        for name, value in context_log_fields().items():
            if given.get(name) is None and name not in left_out:
                given[name] = value
        return True


def context_log_fields() -> dict[str, Any]:
    """Return the ids of the current context; none outside of requests and jobs."""
    context = current_context()
    ids: dict[str, Any] = {
        "request_id": context.request_id,
        "correlation_id": context.correlation_id or context.request_id,
        "job_id": context.parent_id and str(context.parent_id),
        "job_type": context.job_type,
        "org_id": context.org_id and str(context.org_id),
        "project_id": context.project_id and str(context.project_id),
        "attempt": context.attempt,
        # The second part, after the version, so that the record is found from its trace.
        "trace_id": context.traceparent and context.traceparent.split("-")[1],
    }
    return {name: value for name, value in ids.items() if value is not None}
