"""Random job requests of customers, as in a bookkeeping product."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from duly.client.requests import JobSubmission

from .customers import Org
from .integrations import SYSTEMS
from .reports import LONG

RUN_ID = f"demo-{uuid.uuid4().hex[:6]}"
"""Marks the jobs of this run, apart from those of visitors and other runs."""
_NAMES = ("ada", "bo", "cleo", "dora", "emil", "finn", "greta", "hugo")
_SHEETS = ("spring", "summer", "autumn", "winter", "basics", "outlet-old", "archive-old")


def random_job(org: Org) -> JobSubmission:
    """Return a random job; rarely one that becomes a dead letter."""
    create: Callable[[Org], JobSubmission] = random.choices(list(_KINDS), weights=list(_KINDS.values()))[0]
    return create(org)


def catalog_import(org: Org) -> JobSubmission:
    """Import some sheets of a supplier."""
    sheets = random.sample(_SHEETS, random.randint(2, 4))
    return _request("catalog.import", supplier=random.choice(("Meyer", "Tradewise", "Olsson")), sheets=sheets)


def customer_export(org: Org) -> JobSubmission:
    """Export all customers as a file."""
    return _request(
        "export.customers", format=random.choice(("csv", "txt")), rows=random.randint(400, 90_000)
    )


def renewal(org: Org) -> JobSubmission:
    """Renew a subscription later."""
    at = datetime.now(UTC) + timedelta(seconds=random.uniform(15, 90))
    request = _request(
        "subscription.renew", plan=random.choice(("solo", "team")), seats=random.randint(1, 80)
    )
    return {**request, "scheduled_for": at}


def report(org: Org, seconds: float) -> JobSubmission:
    """Report on all regions, taking about this long."""
    quarter = f"2026-Q{random.randint(1, 4)}"
    each = round(seconds / len(org.regions), 1)
    request = _request(LONG, quarter=quarter, regions=list(org.regions), seconds=each)
    return {**request, "subject_id": f"report:{quarter}"}


def _request(job_type: str, **payload: Any) -> JobSubmission:
    return {"job_type": job_type, "payload": payload, "metadata": {"asked_by": RUN_ID}}


def _invoice() -> str:
    return f"2026-{random.randint(1, 99_999):05}"


def _book(org: Org) -> JobSubmission:
    request = _request(
        "invoice.book", invoice=_invoice(), cents=random.randint(500, 250_000), customer=org.name
    )
    return {**request, "subject_id": f"customer:{random.choice(_NAMES)}"}


def _send(org: Org) -> JobSubmission:
    to, amount = f"{random.choice(_NAMES)}@customer.example", round(random.uniform(8, 2_400), 2)
    return _request("invoice.send", invoice=_invoice(), to=to, amount=amount)


def _match(org: Org) -> JobSubmission:
    day = f"2026-11-{random.randint(1, 28):02}"
    return _request(
        "payment.match", account=f"giro-{random.randint(1, 4)}", day=day, expected=random.randint(5, 90)
    )


def _remind(org: Org) -> JobSubmission:
    return _request("dunning.letter", invoice=_invoice(), level=random.choice((1, 1, 2, 3)))


def _reset(org: Org) -> JobSubmission:
    return _request("password.reset_mail", user=random.choice(_NAMES))


def _close(org: Org) -> JobSubmission:
    month = f"2026-{random.randint(1, 12):02}"
    return _request("month.close", month=month, invoices=[_invoice() for _ in range(random.randint(2, 4))])


def _forecast(org: Org) -> JobSubmission:
    return _request(
        "forecast.demand", product=random.choice(("rye", "boxes", "ink")), weeks=random.randint(4, 12)
    )


def _render(org: Org) -> JobSubmission:
    return _request(
        "thumbnail.render", picture=f"product-{random.randint(1, 900)}", width=random.choice((160, 640))
    )


def _sync(org: Org) -> JobSubmission:
    system = random.choices(SYSTEMS, weights=(10, 1, 1, 1))[0]
    return _request("crm.sync", system=system, contact=random.randint(100, 999), fields=["name", "phone"])


def _track(org: Org) -> JobSubmission:
    return _request("shipment.track", parcel=f"JD{random.randint(10**9, 10**10)}")


_KINDS: dict[Callable[[Org], JobSubmission], float] = {
    _book: 24,
    _send: 20,
    _match: 12,
    _render: 10,
    _sync: 10,
    _track: 5,
    _remind: 4,
    _reset: 4,
    _forecast: 3,
    catalog_import: 3,
    customer_export: 2,
    renewal: 2,
    _close: 1,
}
"""How often each is drawn."""
