"""What is done beside the jobs, and by whom."""

from __future__ import annotations

from datetime import timedelta

from duly.client.app import App
from duly.control.schedules import Schedules
from duly.model.alerts import Thresholds
from duly.model.errors import ConfigurationError, ContractError
from duly.model.job import Actor
from duly.model.system import SYSTEM_ORG
from duly.notify.dispatcher import Notifier
from duly.notify.recipients import Recipient, checked_locale
from duly.settings import Settings
from duly.upkeep.adapters import AdapterSync
from duly.upkeep.alerts import Alerter, Recipients
from duly.upkeep.loop import Chore
from duly.upkeep.maintenance import MAINTENANCE_SCHEDULES
from duly.upkeep.payer import Payer
from duly.upkeep.reaper import Reaper
from duly.upkeep.reconciler import Reconciler
from duly.upkeep.relay import Relay
from duly.upkeep.scheduler import Scheduler
from duly.upkeep.sealer import Sealer
from duly.upkeep.tidier import Tidier
from duly.webhooks.deliverer import Deliverer, DeliveryOptions
from duly.webhooks.places import Places


def everything(app: App, settings: Settings) -> list[Chore]:
    """What is to be done beside the jobs; every worker's process does them."""
    return [
        Reaper(app, grace=max(settings.worker_heartbeat, settings.worker_lease / 6)),
        Reconciler(app, settings.reconcile_every),
        AdapterSync(app, settings.reconcile_every),
        Payer(app),
        Scheduler(app),
        Sealer(app),
        Relay(app),
        *watching(app, settings),
        Tidier(app),
        _Planner(Schedules(app)),
    ]


def watching(app: App, settings: Settings) -> list[Chore]:
    """What finds out that something is wrong, and tells it as far as that needs no worker."""
    grace = max(3 * settings.reconcile_every, timedelta(minutes=1))
    return [
        Alerter(app, _thresholds(settings), recipients(settings), grace=grace),
        Deliverer(app, Places(settings.webhook_allow), _delivery_options(settings)),
        Notifier(app, public_url=settings.public_url),
    ]


def recipients(settings: Settings) -> Recipients:
    """Who is told; also asked for when something starts, so that what is wrong is refused there."""
    try:
        people = tuple(map(Recipient.read, settings.alert_recipients))
        return Recipients(people, checked_locale(settings.alert_locale))
    except ContractError as error:
        field = "alert_locale" if error.field == "locale" else "alert_recipients"
        raise ConfigurationError(error.message, field=field, fix=error.fix) from None


def _thresholds(settings: Settings) -> Thresholds:
    """What is too much."""
    return Thresholds(
        queue_depth=settings.alert_queue_depth,
        wait=settings.alert_wait,
        waits=settings.alert_waits,
        dead_per_hour=settings.alert_dead_per_hour,
        no_worker=settings.alert_no_worker,
        relay_lag=settings.alert_relay_lag,
    )


def _delivery_options(settings: Settings) -> DeliveryOptions:
    """How webhooks are sent."""
    return DeliveryOptions(
        public_url=settings.public_url,
        limit=settings.webhook_timeout,
        patience=settings.webhook_disable_after,
    )


class _Planner:
    """The chore that has maintenance scheduled."""

    name = "planner"

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules

    async def once(self) -> timedelta:
        for due in MAINTENANCE_SCHEDULES:
            await self._schedules.create(
                SYSTEM_ORG, due.name, cron=due.cron, job_type=due.job_type, actor=Actor.system("duly")
            )
        return timedelta(days=1)
