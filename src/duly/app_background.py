"""The background services that run beside the jobs: maintenance, relays, deliveries and alerts."""

from __future__ import annotations

from datetime import timedelta

from duly.core.errors import ConfigurationError, ContractError
from duly.core.job import SYSTEM_ORG, Actor
from duly.features.alerts.alerter import Alerter, AlertRecipients
from duly.features.alerts.thresholds import Thresholds
from duly.features.audit.sealer import Sealer
from duly.features.events.relay import Relay
from duly.features.notifications.dispatcher import NotificationDispatcher
from duly.features.notifications.recipient import Recipient
from duly.features.schedules.scheduler import Scheduler
from duly.features.schedules.service import Schedules
from duly.features.templates.models import checked_locale
from duly.features.webhooks.allowed_destinations import AllowedUrls
from duly.features.webhooks.deliverer import Deliverer, DeliveryOptions
from duly.jobs.application import App
from duly.maintenance.adapter_sync import AdapterSync
from duly.maintenance.failure_callbacks import FailureCallbackRetrier
from duly.maintenance.layouts import LayoutSwitch
from duly.maintenance.loop import Chore
from duly.maintenance.reaper import Reaper
from duly.maintenance.reconciler import Reconciler
from duly.maintenance.retention import MAINTENANCE_SCHEDULES
from duly.maintenance.vacuum import QueueVacuum
from duly.settings import Settings


def background_services(app: App, settings: Settings) -> list[Chore]:
    """Return all background services; every worker process runs them."""
    return [
        Reaper(app, grace=max(settings.worker_heartbeat, settings.worker_lease / 6)),
        Reconciler(app, settings.reconcile_every),
        AdapterSync(app, settings.reconcile_every),
        FailureCallbackRetrier(app),
        Scheduler(app),
        Sealer(app),
        Relay(app),
        *alerting_services(app, settings),
        QueueVacuum(app),
        LayoutSwitch(app),
        _MaintenancePlanner(Schedules(app)),
    ]


def alerting_services(app: App, settings: Settings) -> list[Chore]:
    """Return the services that detect and deliver alerts without a worker."""
    grace = max(3 * settings.reconcile_every, timedelta(minutes=1))
    return [
        Alerter(app, _thresholds(settings), alert_recipients(settings), grace=grace),
        Deliverer(app, AllowedUrls(settings.webhook_allow), _delivery_options(settings)),
        NotificationDispatcher(app, public_url=settings.public_url),
    ]


def alert_recipients(settings: Settings) -> AlertRecipients:
    """Return the recipients of alerts; called at the start of a process to refuse invalid ones there."""
    try:
        people = tuple(map(Recipient.parse, settings.alert_recipients))
        return AlertRecipients(people, checked_locale(settings.alert_locale))
    except ContractError as error:
        field = "alert_locale" if error.field == "locale" else "alert_recipients"
        raise ConfigurationError(error.message, field=field, fix=error.fix) from None


def _thresholds(settings: Settings) -> Thresholds:
    return Thresholds(
        queue_depth=settings.alert_queue_depth,
        wait=settings.alert_wait,
        waits=settings.alert_waits,
        dead_per_hour=settings.alert_dead_per_hour,
        no_worker=settings.alert_no_worker,
        relay_lag=settings.alert_relay_lag,
    )


def _delivery_options(settings: Settings) -> DeliveryOptions:
    return DeliveryOptions(
        public_url=settings.public_url,
        timeout=settings.webhook_timeout,
        disable_after=settings.webhook_disable_after,
    )


class _MaintenancePlanner:
    """The service that creates the schedules of maintenance jobs."""

    name = "planner"

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules

    async def once(self) -> timedelta:
        for schedule in MAINTENANCE_SCHEDULES:
            await self._schedules.create(
                SYSTEM_ORG,
                schedule.name,
                cron=schedule.cron,
                job_type=schedule.job_type,
                actor=Actor.system("duly"),
            )
        return timedelta(days=1)
