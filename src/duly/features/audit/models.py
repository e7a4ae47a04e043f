"""Resources of the audit trail: entries, pages of them, and the report of a verification."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.core.job import ActorType, JobSnapshot
from duly.features.audit.chain import ChainProblem


class AuditEntry(BaseModel):
    """An entry of the audit trail: a change, its actor and its reason."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    entry_id: UUID
    occurred_at: datetime
    actor_type: ActorType
    actor_id: str
    action: str
    target_type: str
    target_id: str
    reason: str | None
    request_id: str | None
    correlation_id: str | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of entries; `after` is the cursor of the next page, None on the last one.

    A filter scans a bounded number of entries: a page may be short or empty although more pages follow.
    """

    entries: tuple[AuditEntry, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class AuditEventPage:
    """A page of job events; `after` is the cursor of the next page, `more` whether to read it at once."""

    events: tuple[dict[str, Any], ...]
    after: str
    more: bool


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of a verification."""

    org_id: UUID
    ok: bool
    seals: int
    sealed: int
    """Entries with a seal."""
    unsealed: int
    """Entries without a seal yet."""
    gone: int
    """Sealed entries that retention has dropped. Their seals still link the chain."""
    kept_since: datetime | None
    """The start of the retained entries."""
    head: str
    """The hash of the last seal. Store it outside of the database, and expect it next time."""
    broken_at: int | None
    """The number of the first seal with a problem."""
    problems: tuple[ChainProblem, ...]
    """The first hundred."""


@dataclass(frozen=True, slots=True)
class Verification:
    """A job that verifies the audit trail of an org; it has a report once it has succeeded."""

    job: JobSnapshot
    report: AuditReport | None
