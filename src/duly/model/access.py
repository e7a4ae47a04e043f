"""Who may do what: scopes, the roles of members, and whoever asks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from duly.model.errors import Forbidden
from duly.model.job import Actor


class Scope(StrEnum):
    """What a credential allows."""

    READ = "jobs:read"
    """See jobs, their events and results."""
    WRITE = "jobs:write"
    """Have jobs done, and cancel them."""
    OPERATE = "operate"
    """Replay, fix and discard what died; schedules; what webhooks were told."""
    ADMIN = "admin"
    """Keys, members, webhooks and the audit trail of the org."""
    PLATFORM = "platform"
    """The installation itself: orgs, queues, limits, workers."""


class Role(StrEnum):
    """What a member of an org is."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


_VIEWER = frozenset({Scope.READ})
_OPERATOR = _VIEWER | {Scope.WRITE, Scope.OPERATE}
SCOPES_OF = MappingProxyType(
    {Role.VIEWER: _VIEWER, Role.OPERATOR: _OPERATOR, Role.ADMIN: _OPERATOR | {Scope.ADMIN}}
)


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody whose credential was believed. The org is the credential's, never the caller's word."""

    org_id: UUID
    actor: Actor
    scopes: frozenset[Scope]
    environment: str = "live"
    expires_at: datetime | None = None
    """When the credential ends, if it says so itself."""

    def may(self, scope: Scope) -> bool:
        """Whether the credential allows it."""
        return scope in self.scopes

    def require(self, scope: Scope) -> None:
        """Raise unless the credential allows it."""
        if scope not in self.scopes:
            raise Forbidden(
                f"this credential does not allow {scope.value}",
                field="authorization",
                fix=f"use one with the scope {scope.value}",
            )
