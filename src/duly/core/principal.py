"""Authorization: scopes, the roles of members, and principals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from duly.core.errors import Forbidden
from duly.core.job import Actor


class Scope(StrEnum):
    """A permission of a credential."""

    READ = "jobs:read"
    """Read jobs, their events and results."""
    WRITE = "jobs:write"
    """Enqueue and cancel jobs."""
    OPERATE = "operate"
    """Replay, edit and discard dead letters; manage schedules; read webhook deliveries."""
    ADMIN = "admin"
    """Manage API keys, members and webhooks of the org; read its audit trail."""
    PLATFORM = "platform"
    """Manage the installation: orgs, queues, limits, workers."""


def known_scopes(names: Iterable[str]) -> frozenset[Scope]:
    """Return the scopes of these names; a scope of a later version grants nothing here."""
    return frozenset(Scope(name) for name in names if name in set(Scope))


class Role(StrEnum):
    """The role of a member in an org."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


_VIEWER = frozenset({Scope.READ})
_OPERATOR = _VIEWER | {Scope.WRITE, Scope.OPERATE}
ROLE_SCOPES = MappingProxyType(
    {Role.VIEWER: _VIEWER, Role.OPERATOR: _OPERATOR, Role.ADMIN: _OPERATOR | {Scope.ADMIN}}
)


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated actor with its org and scopes, all taken from the credential."""

    org_id: UUID
    actor: Actor
    scopes: frozenset[Scope]
    environment: str = "live"
    expires_at: datetime | None = None
    """The expiry of the credential, if it has one."""

    def may(self, scope: Scope) -> bool:
        """Return whether the credential has the scope."""
        return scope in self.scopes

    def require(self, scope: Scope) -> None:
        """Raise unless the credential has the scope."""
        if scope not in self.scopes:
            raise Forbidden(
                f"this credential does not allow {scope.value}",
                field="authorization",
                fix=f"use one with the scope {scope.value}",
            )
