"""How a job type is run: what is decided by its code, not stored with its jobs."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from duly.model.errors import ConfigurationError

Isolation = Literal["process"]


class HandlerContext(ABC):
    """What a handler is given when it asks for it by annotation. The worker has the real ones.

    What is declared here is for handlers in rooms that do not know the worker.
    """

    for_async: ClassVar[bool] = True
    """Whether its calls are awaited."""

    @abstractmethod
    def progress(self, percent: float, note: str | None = None) -> None:
        """How far it is. Never falls; cheap: many calls become few writes."""

    @abstractmethod
    def check_canceled(self) -> None:
        """Stop here if somebody asked for it, or if the job is no longer ours. Call it between steps."""


@dataclass(frozen=True, slots=True)
class Handling:
    """What the worker must know about a handler."""

    isolation: Isolation | None = None
    memory_limit: int | None = None
    """Bytes the isolated process may use."""
    allows_partial: bool = False
    """Whether a job with failed chunks may still complete, as partially succeeded."""
    dependency: str | None = None
    """Whose retries this job type spends; its own if None."""
    never_retry: tuple[type[Exception], ...] = ()
    """Errors that will not pass."""

    def check(self, handler: Callable[..., Any]) -> None:
        """Refuse what cannot work."""
        given: tuple[Any, ...] = self.never_retry
        for kind in given:
            if not (isinstance(kind, type) and issubclass(kind, BaseException)):
                raise ConfigurationError(f"{kind!r} is no error", field="never_retry", fix="name exceptions")
        if self.isolation not in (None, "process"):
            raise ConfigurationError(
                f"{self.isolation!r} is unknown", field="isolation", fix='use "process", or leave it out'
            )
        if self.memory_limit is not None and self.isolation is None:
            raise ConfigurationError(
                "only a process can be limited", field="memory_limit", fix='add isolation="process"'
            )
        if self.memory_limit is not None and self.memory_limit < 64 * 2**20:
            raise ConfigurationError(
                "Python itself needs more", field="memory_limit", fix="allow 64 MiB or more"
            )
        if self.isolation == "process" and "<locals>" in handler.__qualname__:
            raise ConfigurationError(
                f"{handler.__qualname__} cannot be found by another process",
                field="isolation",
                fix="define the handler at the top of its module",
            )


def check_context(wanted: type[HandlerContext] | None, *, is_async: bool) -> None:
    """Refuse a context whose calls would block the loop, or never be awaited."""
    if wanted is not None and wanted.for_async is not is_async:
        raise ConfigurationError(
            f"{wanted.__name__} is for handlers that are {'' if wanted.for_async else 'not '}async",
            field="ctx",
            fix=f"annotate it as {'Context' if is_async else 'SyncContext'}",
        )


def context_parameter(signature: inspect.Signature, hints: Mapping[str, Any]) -> str | None:
    """The name of the parameter that asks for the context: the first one, by its annotation."""
    asking = [
        name
        for name in signature.parameters
        if isinstance(hints.get(name), type) and issubclass(hints[name], HandlerContext)
    ]
    if asking and asking != [next(iter(signature.parameters))]:
        raise ConfigurationError(
            "the context comes once, and first", field=asking[-1], fix="make it the first argument"
        )
    return asking[0] if asking else None
