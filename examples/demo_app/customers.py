"""The customers: four orgs of different size, their configuration and their API keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from duly import Actor, Duly
from duly.core.job import SYSTEM_ORG
from duly.core.principal import ROLE_SCOPES, Role, Scope

ACTOR = Actor.system("demo")
REASON = "demo setup"
KEY_LIFETIME = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Org:
    """A customer."""

    org_id: UUID
    name: str
    per_second: float
    """Jobs per second."""
    regions: tuple[str, ...] = ("DE", "AT", "CH")


def _id(number: int) -> UUID:
    return UUID(f"d0000000-0000-4000-8000-0000000000a{number}")


ORGS = (
    Org(_id(1), "Nordwind Logistics", 1.0, regions=("DE-North", "DE-South", "NL", "DK", "PL", "SE")),
    Org(_id(2), "Studio Lindqvist", 0.5, regions=("SE", "NO", "FI", "DK")),
    Org(_id(3), "Bakery Sommer", 0.2, regions=("Kiel", "Lübeck", "Plön")),
    Org(_id(4), "Flash Sale Ltd", 0.3, regions=("UK", "IE")),
)
"""The last is the noisy one, which also comes with very many at once."""


@dataclass
class Keys:
    """The API keys; printed by the demo, not stored."""

    platform: str = field(repr=False)
    of: dict[UUID, str] = field(repr=False)


async def create_customers(app: Duly) -> Keys:
    """Create the orgs; repeating it changes nothing but the keys."""
    until = datetime.now(UTC) + KEY_LIFETIME
    keys = {}
    for org in ORGS:
        await app.create_org(org.org_id, org.name, actor=ACTOR, reason=REASON)
        key = await app.api_keys.create(
            org.org_id, "demo", ROLE_SCOPES[Role.ADMIN], expires_at=until, actor=ACTOR, reason=REASON
        )
        keys[org.org_id] = key.text
        await _set_up(app, org)
    noisy = ORGS[-1].org_id
    await app.limits.set(
        noisy, "catalog.import", max_running=3, actor=ACTOR, reason="one import line per customer"
    )
    await app.queues.set_alerts("q:exports", depth=40, actor=ACTOR, reason="early alerts in the demo")
    platform_key = await app.api_keys.create(
        SYSTEM_ORG, "demo", [Scope.PLATFORM], expires_at=until, actor=ACTOR, reason=REASON
    )
    return Keys(platform_key.text, keys)


async def _set_up(app: Duly, org: Org) -> None:
    """Create members, schedules and subscriptions."""
    for user, role in (("anna", Role.ADMIN), ("ben", Role.OPERATOR), ("caro", Role.VIEWER)):
        await app.members.set(org.org_id, user, role, actor=ACTOR, reason=REASON)
    await app.subscriptions.subscribe(org.org_id, "in_app:anna", outcomes=["dead"], actor=ACTOR)
    schedules: dict[str, tuple[str, str, dict[str, Any]]] = {
        "check-the-stock": ("*/20 * * * * *", "stock.check", {"warehouse": org.regions[0]}),
        "morning-digest": ("0 * * * * *", "digest.send", {"audience": "team"}),
        "verify-the-backup": ("30 * * * * *", "backup.verify", {"name": "nightly"}),
        "renew-subscriptions": ("0 6 1 * *", "subscription.renew", {"plan": "team", "seats": 12}),
    }
    selected = schedules if org is ORGS[0] else {"check-the-stock": schedules["check-the-stock"]}
    for name, (cron, job_type, payload) in selected.items():
        await app.schedules.create(
            org.org_id, name, cron=cron, job_type=job_type, payload=payload,
            timezone="Europe/Berlin", actor=ACTOR, reason=REASON,
        )  # fmt: skip
    if org is ORGS[0]:
        await app.schedules.pause(org.org_id, "morning-digest", Actor.user("anna"), "summer break")
