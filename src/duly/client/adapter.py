"""Adapters: what the product's own records say of their jobs, compared with what the jobs say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from duly.model.job import JobSnapshot
from duly.store.pool import Connection


@dataclass(frozen=True, slots=True)
class DomainRecord:
    """A record of the product that a job works for."""

    record_id: str
    job_id: UUID
    over: bool = False
    """Whether the record says that there is nothing left to do."""
    reason: str = ""
    """Why it is over: shown to operators."""


class Adapter(Protocol):
    """Keeps one kind of records true. Both calls get a transaction of the org, in the tenant's role."""

    name: str

    async def find(self, conn: Connection, limit: int) -> Sequence[DomainRecord]:
        """Records of this org to compare: those not over, and those that ended lately."""

    async def settle(self, conn: Connection, record: DomainRecord, job: JobSnapshot | None) -> bool:
        """Its job has ended, or is no longer kept: make the record say so. Whether that changed it."""
