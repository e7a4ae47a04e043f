"""The alerts of an org, and of the installation."""

from __future__ import annotations

import builtins
from datetime import UTC, datetime, timedelta
from uuid import UUID

from duly.core.errors import ContractError
from duly.core.job import SYSTEM_ORG
from duly.deprecated_names import DeprecatedName
from duly.features.alerts import store
from duly.features.alerts.models import AlertKind, AlertPage, Severity
from duly.features.alerts.store import list_open
from duly.features.alerts.thresholds import Measurements, check_workers
from duly.features.arguments import org_uuid
from duly.features.pagination import decode_cursor, read_org_page, time_cursor
from duly.jobs.application import App

__all__ = ["Alerts", "list_open"]

_MAX_CRITICAL = 100
_NEWEST = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))


class Alerts:
    """The alerts of the orgs of an application. Those of the installation belong to the system org."""

    unwell = DeprecatedName("critical_kinds")

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(
        self,
        org_id: UUID | str = SYSTEM_ORG,
        *,
        everything: bool = False,
        kind: AlertKind | str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> AlertPage:
        """Return the open alerts of an org, newest first; with `everything` also the resolved ones.

        Without an org, those of the installation. An unknown org raises.
        """
        org, only = org_uuid(org_id), _checked_kind(kind)
        before = decode_cursor(after, lambda at, alert: (time_cursor(at), UUID(alert))) or _NEWEST
        page = await read_org_page(
            self._app,
            org,
            lambda conn, count: store.list_before(
                conn, org, before, everything=everything, kind=only, limit=count
            ),
            lambda last: (last.fired_at.isoformat(), last.alert_id),
            limit=limit,
        )
        return AlertPage(*page)

    async def critical_kinds(self, no_worker: timedelta) -> builtins.list[AlertKind]:
        """Return the kinds of critical conditions of the installation, each once.

        They come from its open alerts, and from a check for living workers: without workers, no alerter may
        be running. `no_worker` is how long there may be none.
        """
        async with (await self._app.resources()).database.engine() as conn:
            presence = await store.read_worker_presence(conn)
        alerts = (await self.list(limit=_MAX_CRITICAL)).alerts
        critical = {alert.kind for alert in alerts if alert.severity is Severity.CRITICAL}
        silent = {firing.kind for firing in check_workers(Measurements(**presence._asdict()), no_worker)}
        return sorted((critical | silent) - {AlertKind.DEAD_LETTER})


def _checked_kind(kind: AlertKind | str | None) -> str | None:
    try:
        return None if kind is None else AlertKind(kind).value
    except ValueError:
        raise ContractError(
            f"unknown kind of alert {kind!r}", field="kind", fix=f"use one of {', '.join(AlertKind)}"
        ) from None
