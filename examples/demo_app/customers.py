"""The customers: four orgs of different size, what they have set up, and the keys to come in with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from duly import Actor, Duly
from duly.core.job import SYSTEM_ORG
from duly.core.principal import ROLE_SCOPES, Role, Scope

US = Actor.system("demo")
_WHY = "the demo sets itself up"
_KEY_LASTS = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Org:
    """A customer."""

    org_id: UUID
    name: str
    per_second: float
    """How many jobs it asks for."""
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
    """What to come in with; told by the demo, kept nowhere."""

    platform: str = field(repr=False)
    of: dict[UUID, str] = field(repr=False)


async def settle_in(app: Duly) -> Keys:
    """Make the orgs, as whoever runs the product would; doing it again changes nothing but the keys."""
    until = datetime.now(UTC) + _KEY_LASTS
    made = {}
    for org in ORGS:
        await app.create_org(org.org_id, org.name, actor=US, reason=_WHY)
        key = await app.api_keys.create(
            org.org_id, "demo", ROLE_SCOPES[Role.ADMIN], expires_at=until, actor=US, reason=_WHY
        )
        made[org.org_id] = key.text
        await _furnish(app, org)
    noisy = ORGS[-1].org_id
    await app.limits.set(
        noisy, "catalog.import", max_running=3, actor=US, reason="one import line per customer"
    )
    await app.queues.set_alerts("q:exports", depth=40, actor=US, reason="the demo wants to be told early")
    ours = await app.api_keys.create(
        SYSTEM_ORG, "demo", [Scope.PLATFORM], expires_at=until, actor=US, reason=_WHY
    )
    return Keys(ours.text, made)


async def _furnish(app: Duly, org: Org) -> None:
    """Members, schedules, and who is told what."""
    for user, role in (("anna", Role.ADMIN), ("ben", Role.OPERATOR), ("caro", Role.VIEWER)):
        await app.members.set(org.org_id, user, role, actor=US, reason=_WHY)
    await app.subscriptions.subscribe(org.org_id, "in_app:anna", outcomes=["dead"], actor=US)
    ticking: dict[str, tuple[str, str, dict[str, Any]]] = {
        "check-the-stock": ("*/20 * * * * *", "stock.check", {"warehouse": org.regions[0]}),
        "morning-digest": ("0 * * * * *", "digest.send", {"audience": "team"}),
        "verify-the-backup": ("30 * * * * *", "backup.verify", {"name": "nightly"}),
        "renew-subscriptions": ("0 6 1 * *", "subscription.renew", {"plan": "team", "seats": 12}),
    }
    few = ticking if org is ORGS[0] else {"check-the-stock": ticking["check-the-stock"]}
    for name, (cron, job_type, payload) in few.items():
        await app.schedules.create(
            org.org_id, name, cron=cron, job_type=job_type, payload=payload,
            timezone="Europe/Berlin", actor=US, reason=_WHY,
        )  # fmt: skip
    if org is ORGS[0]:
        await app.schedules.pause(
            org.org_id, "morning-digest", Actor.user("anna"), "nobody reads it in August"
        )
