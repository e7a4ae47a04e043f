"""What customers ask for, drawn at random: names and payloads as a bookkeeping product has them."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from duly.client.requests import JobSubmission

from .links import SYSTEMS
from .people import Org
from .reports import LONG

ASKED_BY = f"demo-{uuid.uuid4().hex[:6]}"
"""By this the jobs of this run are known from those of visitors, and of another run."""
_NAMES = ("ada", "bo", "cleo", "dora", "emil", "finn", "greta", "hugo")
_SHEETS = ("spring", "summer", "autumn", "winter", "basics", "outlet-old", "archive-old")


def wish(org: Org) -> JobSubmission:
    """One job, of any kind; rarely one of those that die."""
    drawn: Callable[[Org], JobSubmission] = random.choices(list(_KINDS), weights=list(_KINDS.values()))[0]
    return drawn(org)


def import_of(org: Org) -> JobSubmission:
    """Some sheets of a supplier."""
    sheets = random.sample(_SHEETS, random.randint(2, 4))
    return _said("catalog.import", supplier=random.choice(("Meyer", "Tradewise", "Olsson")), sheets=sheets)


def export_of(org: Org) -> JobSubmission:
    """All customers as a file."""
    return _said("export.customers", format=random.choice(("csv", "txt")), rows=random.randint(400, 90_000))


def later(org: Org) -> JobSubmission:
    """Something for which it is not time yet."""
    at = datetime.now(UTC) + timedelta(seconds=random.uniform(15, 90))
    made = _said("subscription.renew", plan=random.choice(("solo", "team")), seats=random.randint(1, 80))
    return {**made, "scheduled_for": at}


def report(org: Org, seconds: float) -> JobSubmission:
    """A report over all regions that takes about so long."""
    quarter = f"2026-Q{random.randint(1, 4)}"
    each = round(seconds / len(org.regions), 1)
    made = _said(LONG, quarter=quarter, regions=list(org.regions), seconds=each)
    return {**made, "subject_id": f"report:{quarter}"}


def _said(job_type: str, **payload: Any) -> JobSubmission:
    return {"job_type": job_type, "payload": payload, "metadata": {"asked_by": ASKED_BY}}


def _invoice() -> str:
    return f"2026-{random.randint(1, 99_999):05}"


def _book(org: Org) -> JobSubmission:
    made = _said("invoice.book", invoice=_invoice(), cents=random.randint(500, 250_000), customer=org.name)
    return {**made, "subject_id": f"customer:{random.choice(_NAMES)}"}


def _send(org: Org) -> JobSubmission:
    to, amount = f"{random.choice(_NAMES)}@customer.example", round(random.uniform(8, 2_400), 2)
    return _said("invoice.send", invoice=_invoice(), to=to, amount=amount)


def _match(org: Org) -> JobSubmission:
    day = f"2026-11-{random.randint(1, 28):02}"
    return _said(
        "payment.match", account=f"giro-{random.randint(1, 4)}", day=day, expected=random.randint(5, 90)
    )


def _remind(org: Org) -> JobSubmission:
    return _said("dunning.letter", invoice=_invoice(), level=random.choice((1, 1, 2, 3)))


def _reset(org: Org) -> JobSubmission:
    return _said("password.reset_mail", user=random.choice(_NAMES))


def _close(org: Org) -> JobSubmission:
    month = f"2026-{random.randint(1, 12):02}"
    return _said("month.close", month=month, invoices=[_invoice() for _ in range(random.randint(2, 4))])


def _forecast(org: Org) -> JobSubmission:
    return _said(
        "forecast.demand", product=random.choice(("rye", "boxes", "ink")), weeks=random.randint(4, 12)
    )


def _render(org: Org) -> JobSubmission:
    return _said(
        "thumbnail.render", picture=f"product-{random.randint(1, 900)}", width=random.choice((160, 640))
    )


def _sync(org: Org) -> JobSubmission:
    system = random.choices(SYSTEMS, weights=(10, 1, 1, 1))[0]
    return _said("crm.sync", system=system, contact=random.randint(100, 999), fields=["name", "phone"])


def _track(org: Org) -> JobSubmission:
    return _said("shipment.track", parcel=f"JD{random.randint(10**9, 10**10)}")


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
    import_of: 3,
    export_of: 2,
    later: 2,
    _close: 1,
}
"""How often each is drawn."""
