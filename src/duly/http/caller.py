"""Whoever sent a request, and how they reach us."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import UUID

from duly.model.access import Principal, Scope
from duly.model.job import Actor


@dataclass(frozen=True, slots=True)
class Caller:
    """A principal at the door."""

    principal: Principal
    base: str
    """What comes before our paths in the links they get."""
    again: Callable[[], Awaitable[object]] = field(repr=False)
    """Raises if they are no longer believed: for whoever has kept them waiting."""

    @property
    def org_id(self) -> UUID:
        """The org of the credential; no request can name another."""
        return self.principal.org_id

    @property
    def actor(self) -> Actor:
        """Who the changes are put down to."""
        return self.principal.actor

    def may(self, scope: Scope) -> bool:
        """Whether the credential allows it."""
        return self.principal.may(scope)

    def link(self, path: str) -> str:
        """Where they find it."""
        return f"{self.base}{path}"
