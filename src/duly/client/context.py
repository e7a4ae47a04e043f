"""On whose behalf: the org, the actor and the trace of the work at hand."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any
from uuid import UUID

from duly.model.errors import ContractError, MissingField
from duly.model.job import Actor, Origin

_LONGEST = 500
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True)
class Surroundings:
    """What is known here and now; what is missing is asked for when a job is enqueued."""

    org_id: UUID | None = None
    actor: Actor | None = None
    project_id: UUID | None = None
    request_id: str | None = None
    correlation_id: str | None = None
    traceparent: str | None = None
    parent_id: UUID | None = None
    """The job inside which we are."""
    job_type: str | None = None
    attempt: int | None = None
    """Of that job: for the log."""

    def over(self, outer: Surroundings) -> Surroundings:
        """These, completed by those around them."""
        if self is NOTHING or self == NOTHING:
            return outer
        pairs = zip(_values(self), _values(outer), strict=True)
        return Surroundings(*[theirs if mine is None else mine for mine, theirs in pairs])

    def origin(self) -> Origin:
        """The contract's fields, or an error that names the missing one."""
        if self.request_id is None:
            return replace(self, request_id=f"req-{uuid.uuid4().hex}").origin()
        return self._origin

    @cached_property
    def _origin(self) -> Origin:
        if self.org_id is None:
            raise MissingField(
                "missing", field="org_id", fix="enqueue inside duly.context(org_id=..., actor=...)"
            )
        if self.actor is None:
            raise MissingField(
                "missing", field="actor", fix="say who asks: duly.context(actor=Actor.user(...))"
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


NOTHING = Surroundings()
_values = attrgetter(*(field.name for field in fields(Surroundings)))
_current: ContextVar[Surroundings | Callable[[], Surroundings]] = ContextVar(
    "duly_surroundings", default=NOTHING
)


def enter(inner: Callable[[], Surroundings]) -> None:
    """Be in these surroundings for the rest of the running task or thread; made when somebody asks."""
    _current.set(inner)


def surroundings() -> Surroundings:
    """What the innermost `context` says."""
    found = _current.get()
    if not isinstance(found, Surroundings):
        found = found()
        _current.set(found)
    return found


def origin(inner: Surroundings) -> Origin:
    """Where a job comes from that is asked for here and now, with what is said for it alone."""
    return inner.over(surroundings()).origin()


class Within:
    """`context` for surroundings that were checked: of every request of a service, so it costs little."""

    def __init__(self, inner: Surroundings) -> None:
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
    """Everything enqueued inside is for this org, by this actor, of this request. Nests."""
    outer = surroundings()
    inner = Surroundings(
        org_id=as_uuid("org_id", org_id),
        actor=checked_actor(actor),
        project_id=as_uuid("project_id", project_id),
        request_id=checked_text("request_id", request_id) or outer.request_id or f"req-{uuid.uuid4().hex}",
        correlation_id=checked_text("correlation_id", correlation_id),
        traceparent=checked_traceparent(traceparent),
    )
    token = _current.set(inner.over(outer))
    try:
        yield
    finally:
        _current.reset(token)


def as_uuid(field: str, value: UUID | str | None) -> UUID | None:
    """A uuid, also from its text."""
    if value is None or isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise ContractError(f"{value!r} is not a uuid", field=field, fix="pass a uuid or its text") from None


def checked_actor(value: Actor | None) -> Actor | None:
    """An actor with an id, or an error."""
    if value is None:
        return None
    if not isinstance(value, Actor):
        raise ContractError(
            f"{value!r} is no Actor", field="actor", fix="use Actor.user(...), .api_key, .system"
        )
    checked_text("actor.id", value.id)
    return value


def checked_text(field: str, value: Any) -> str | None:
    """A short text that PostgreSQL can store, or an error."""
    if value is None:
        return None
    if not isinstance(value, str) or "\0" in value or not _is_text(value):
        raise ContractError("not a text that can be stored", field=field, fix="pass a str without NUL")
    if not value:
        raise ContractError("empty", field=field, fix="say something")
    if len(value) > _LONGEST:
        raise ContractError(f"longer than {_LONGEST} characters", field=field, fix="shorten it")
    return value


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def checked_traceparent(value: str | None) -> str | None:
    """A W3C traceparent, or an error."""
    if value is not None and not _TRACEPARENT.fullmatch(value):
        raise ContractError(
            f"{value!r} is no W3C traceparent", field="traceparent", fix="pass the header as it came"
        )
    return value
