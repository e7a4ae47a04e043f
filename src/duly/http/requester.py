"""The authenticated sender of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import UUID

from duly.core.job import Actor
from duly.core.principal import Principal, Scope


@dataclass(frozen=True, slots=True)
class Requester:
    """The principal of a request, and the base of the links in its response."""

    principal: Principal
    base: str
    """The prefix of links: the public URL, or the path at which the service is mounted."""
    reauthenticate: Callable[[], Awaitable[object]] = field(repr=False)
    """Raises if the credential no longer holds; called after a wait."""

    @property
    def org_id(self) -> UUID:
        """The org of the credential; no request can name another."""
        return self.principal.org_id

    @property
    def actor(self) -> Actor:
        """The author of changes, for the audit trail."""
        return self.principal.actor

    def may(self, scope: Scope) -> bool:
        """Return whether the credential has a scope."""
        return self.principal.may(scope)

    def link(self, path: str) -> str:
        """Return the URL of a path."""
        return f"{self.base}{path}"
