"""Alerts of an org, and of the installation: what somebody should look at."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from duly.core.errors import ContractError
from duly.core.job import SYSTEM_ORG
from duly.features.alerts import store as alerts
from duly.features.alerts.rules import Figures, Kind, Severity, no_worker
from duly.features.alerts.store import Alert
from duly.features.arguments import check_org_exists, org_uuid
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.jobs.application import App

__all__ = ["Alert", "AlertPage", "Alerts", "Kind", "Severity"]

_LOOK = 100
_NEWEST = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))


@dataclass(frozen=True, slots=True)
class AlertPage:
    """Some alerts; `after` asks for those that follow, and is None at the end."""

    alerts: tuple[Alert, ...]
    after: str | None


class Alerts:
    """The alerts of the orgs of an application. Those of the installation are the system's."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(
        self,
        org_id: UUID | str = SYSTEM_ORG,
        *,
        everything: bool = False,
        kind: Kind | str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> AlertPage:
        """The open alerts of an org, or all that are kept; the newest first. An unknown org raises.

        Without an org, those of the installation.
        """
        whose, size, which = org_uuid(org_id), page_size(limit), _kind(kind)
        start = decode_cursor(after, lambda at, alert: (_moment(at), UUID(alert))) or _NEWEST
        async with self._app.tenant_session(whose) as conn:
            found = await alerts.newest(conn, whose, start, everything=everything, kind=which, limit=size + 1)
            if not found:
                await check_org_exists(conn, whose)
        page = tuple(found[:size])
        more = len(found) > size
        return AlertPage(
            page, encode_cursor(page[-1].fired_at.isoformat(), page[-1].alert_id) if more else None
        )

    async def unwell(self, patience: timedelta) -> builtins.list[Kind]:
        """What is seriously wrong with the installation, each kind once.

        By its open alerts; and by a look whether anybody works, because else nobody might look. `patience` is
        how long there may be no living worker.
        """
        async with (await self._app.resources()).database.engine() as conn:
            presence = await alerts.presence(conn)
        open_ones = (await self.list(limit=_LOOK)).alerts
        found = [alert.kind for alert in open_ones if alert.severity is Severity.CRITICAL]
        silent = [one.kind for one in no_worker(Figures(**presence._asdict()), patience)]
        return sorted({*found, *silent} - {Kind.DEAD_LETTER})


def _kind(kind: Kind | str | None) -> str | None:
    try:
        return None if kind is None else Kind(kind).value
    except ValueError:
        known = ", ".join(Kind)
        raise ContractError(f"{kind!r} is no kind of alert", field="kind", fix=f"one of {known}") from None


def _moment(written: str) -> datetime:
    return datetime.fromisoformat(written).astimezone(UTC)
