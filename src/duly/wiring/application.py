"""The application: everything it offers, made when somebody asks for it.

What sends messages needs libraries that take a moment to load: only who sends loads them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from duly.client.app import App
from duly.client.ground import Ground
from duly.control import enrichment, verifier
from duly.control.alerts import Alerts
from duly.control.audit import Audit
from duly.control.deadletter import DeadLetters
from duly.control.doctor import Circumstances, Doctor
from duly.control.feed import Feed
from duly.control.figures import Figures
from duly.control.jobs import Jobs
from duly.control.keys import Keys
from duly.control.limits import Limits
from duly.control.members import Members
from duly.control.orgs import Orgs
from duly.control.overview import Overview
from duly.control.queues import Queues
from duly.control.results import Results
from duly.control.schedules import Schedules
from duly.model.errors import ConfigurationError
from duly.model.invariants import Conditions, refuse, violations
from duly.settings import Settings
from duly.store import migrate
from duly.upkeep import maintenance
from duly.upkeep.loop import keep_up
from duly.upkeep.maintenance import MAINTENANCE_SCHEDULES
from duly.upkeep.reconciliation import Reconciliation, reconcile
from duly.wiring.ground import Place, embedded, open_ground
from duly.wiring.values import document_options, http_options, worker_options
from duly.worker.options import WorkerOptions
from duly.worker.places import Places
from duly.worker.worker import Worker

if TYPE_CHECKING:
    from fastapi import FastAPI

    from duly.bulk import Bulk
    from duly.console import Extras
    from duly.documents.documents import Documents
    from duly.http.options import May
    from duly.notify import Notifications, Subscriptions
    from duly.upkeep.loop import Chore
    from duly.webhooks.endpoints import Webhooks

_CHORE_LIMIT = 30.0
_CHORES_AT_ONCE = 4


class Duly(App):
    """An application, wired by its settings: arguments win over the environment, that over the file."""

    def __init__(self, settings: Settings | None = None, **overrides: Any) -> None:
        self.settings = settings or Settings.load(**overrides)
        super().__init__(self._open)

    @cached_property
    def place(self) -> Place:
        """The database that the settings name, or the embedded one, started and migrated."""
        url = self.settings.database_url
        if url:
            return Place(url, self.settings.database_direct_url or url)
        return embedded(self.settings.home, self.schemas)

    def migrate(self) -> list[str]:
        """Bring the database to this package's version; the names of what was applied."""
        direct = self.place.direct_url
        return [m.name for schema in (migrate.ENGINE, *self.schemas) for m in migrate.migrate(direct, schema)]

    @cached_property
    def jobs(self) -> Jobs:
        """Jobs as operators see them: listed, explained, canceled."""
        return Jobs(self)

    @cached_property
    def results(self) -> Results:
        """Results under their permalinks."""
        return Results(self, self.settings.retention)

    @cached_property
    def overview(self) -> Overview:
        """The figures of an org, and of the whole installation."""
        return Overview(self)

    @cached_property
    def queues(self) -> Queues:
        """Queues: their weights, pauses and figures."""
        return Queues(self)

    @cached_property
    def limits(self) -> Limits:
        """What orgs and job types may do at a time."""
        return Limits(self)

    @cached_property
    def dead_letters(self) -> DeadLetters:
        """What died, and what is done about it."""
        return DeadLetters(self)

    @cached_property
    def bulk(self) -> Bulk:
        """One change for every job that fits, done as a job."""
        from duly.bulk import Bulk

        return Bulk(self)

    @cached_property
    def schedules(self) -> Schedules:
        """What is to be done again and again."""
        return Schedules(self)

    @cached_property
    def feed(self) -> Feed:
        """Every event of an org, in the order of commits."""
        return Feed(self)

    @cached_property
    def webhooks(self) -> Webhooks:
        """Where orgs want to be told of events, and what they were told."""
        from duly.webhooks.endpoints import Webhooks
        from duly.webhooks.places import Places

        return Webhooks(self, Places(self.settings.webhook_allow))

    @cached_property
    def orgs(self) -> Orgs:
        """Whom the work is for: orgs and their projects, active or suspended."""
        return Orgs(self)

    @cached_property
    def members(self) -> Members:
        """People of the orgs, and what they are there."""
        return Members(self)

    @cached_property
    def keys(self) -> Keys:
        """API keys: for programs that come in from outside."""
        return Keys(self)

    @cached_property
    def audit(self) -> Audit:
        """Who changed what and why; and the proof that nobody changed it since."""
        return Audit(self)

    @cached_property
    def alerts(self) -> Alerts:
        """What somebody should look at, of an org or of the installation."""
        return Alerts(self)

    @cached_property
    def notifications(self) -> Notifications:
        """What people are told: sent, listed, read; and in which words."""
        from duly.notify import Notifications
        from duly.notify.email import Email, MailServer

        made = Notifications(self, public_url=self.settings.public_url)
        if self.settings.smtp_url is not None:
            made.add_channel("email", Email(MailServer.at(self.settings.smtp_url, self.settings.mail_from)))
        return made

    @cached_property
    def subscriptions(self) -> Subscriptions:
        """Who wants to be told how jobs end."""
        from duly.notify import Subscriptions

        return Subscriptions(self)

    @cached_property
    def doctor(self) -> Doctor:
        """Looks at the installation and says what is wrong with it: `await app.doctor.examine()`."""
        around = Circumstances(
            addresses=lambda: (self.place.url, self.place.direct_url),
            direct_is_set=self.settings.database_direct_url is not None,
            conditions=lambda: self._conditions(worker_options(self.settings)),
        )
        return Doctor(self, around)

    def http_app(self, *, may: May | None = None, extras: Extras | None = None) -> FastAPI:
        """The HTTP service with its console, run by itself or mounted: `shop.mount("/duly", app.http_app())`.

        `may` is asked about jobs that have a subject: `await may(principal, subject_id, action)`.
        `extras` are pages of your own for the console.
        """
        try:
            from duly import console
            from duly.http.app import create_app
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                f"{error.name} is not installed", field="http", fix="install duly[http]"
            ) from None
        api = create_app(self, http_options(self.settings, may))
        console.install(api, extras)
        return api

    def include_analyze(self) -> None:
        """Have analyses done: the job type `analyze.run`, and its routes in the HTTP service."""
        from duly.analyze import declare

        declare(self)

    def include_documents(self, **choices: Any) -> None:
        """Have documents kept, read, classified and found: tables, job types, and routes of the service.

        What the settings do not say can be chosen here, such as a `classifier` of your own.
        """
        from duly.documents.including import include

        include(self, replace(document_options(self.settings), **choices))

    @cached_property
    def documents(self) -> Documents:
        """Documents of the orgs; they are included if they were not."""
        from duly.documents.documents import Documents

        self.include_documents()
        return Documents(self)

    def worker(self, *, when_stuck: Callable[[], None] | None = None, **choices: Any) -> Worker:
        """A worker for the job types declared here: `async with app.worker(): ...`."""
        self._declare_maintenance()
        options = replace(worker_options(self.settings), **choices)
        options.check()
        from duly.wiring import chores

        chores.recipients(self.settings)
        refuse(violations({job.name: job.policy for job in self.registry}, self._conditions(options)))
        place = self.place
        direct = self.settings.database_direct_url is None
        opening = partial(open_ground, self.settings, place.url)
        places = Places(
            place.url, place.direct_url, opening, open_engine=partial(opening, engine=True), direct=direct
        )
        beside = partial(self._keep_up, chores.everything) if self.settings.upkeep else None
        return Worker(self, options, places, when_stuck=when_stuck, beside=beside)

    async def reconcile(self, *, dry_run: bool = False) -> Reconciliation:
        """Look at every active job once, and put right what cannot be believed; or only say what that is."""
        self._declare_maintenance()
        return await reconcile(self, dry_run=dry_run)

    @asynccontextmanager
    async def figures(self) -> AsyncIterator[Figures]:
        """What the database says, for Prometheus; over a connection of its own, opened when it is asked."""
        aside = self._aside(partial(open_ground, self.settings, self.place.url, most=1))
        try:
            yield Figures(aside)
        finally:
            await aside.close()

    def _aside(self, opener: Callable[[], Awaitable[Ground]]) -> App:
        """The same with connections of its own: handlers may hold all those of the application."""
        aside = App(opener)
        aside.registry, aside.adapters = self.registry, self.adapters
        return aside

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Meanwhile alerts are found and told by this process, too: where no worker lives, by nobody else."""
        if not self.settings.upkeep:
            yield
            return
        self._declare_maintenance()
        from duly.wiring import chores

        chores.recipients(self.settings)
        stop = asyncio.Event()
        watching = asyncio.create_task(self._keep_up(chores.watching, stop), name="duly-watch")
        try:
            yield
        finally:
            stop.set()
            await watching

    async def _keep_up(self, chores: Callable[[App, Settings], list[Chore]], stop: asyncio.Event) -> None:
        aside = self._aside(self._open_aside)
        try:
            await keep_up(chores(aside, self.settings), stop)
        finally:
            await aside.close()

    async def _open_aside(self) -> Ground:
        ground = await open_ground(self.settings, self.place.url, most=_CHORES_AT_ONCE)
        # Somebody's open transaction must not keep the chores waiting for ever.
        ground.database.limit = max(self.settings.worker_lease.total_seconds(), _CHORE_LIMIT)
        return ground

    def _conditions(self, options: WorkerOptions) -> Conditions:
        bridged = frozenset(job.name for job in self.registry if job.bridge)
        return Conditions(options.lease, options.heartbeat, self.settings.retention, bridged)

    def _declare_maintenance(self) -> None:
        if MAINTENANCE_SCHEDULES[0].job_type not in self.registry:
            maintenance.declare(self, self.settings.retention)
        enrichment.declare(self)
        verifier.declare(self, self.audit.verify)
        from duly import bulk, notify

        bulk.declare(self)
        notify.declare(self, self.notifications)

    async def _open(self) -> Ground:
        place = await asyncio.to_thread(lambda: self.place)
        await asyncio.to_thread(migrate.check, place.direct_url, *self.schemas)
        return await open_ground(self.settings, place.url)
