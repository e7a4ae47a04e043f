"""A member of an org, and a page of members."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.core.principal import Role


class Member(BaseModel):
    """A user who belongs to an org."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    user_id: str
    role: Role
    created_at: datetime


@dataclass(frozen=True, slots=True)
class MemberPage:
    """A page of members; `after` is the cursor of the next page."""

    members: tuple[Member, ...]
    after: str | None
