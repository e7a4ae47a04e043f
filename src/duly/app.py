"""The application object, and the composition root of its services.

Services are created on first use; those that send messages import their libraries only then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Unpack

from duly.app_options import (
    DocumentArguments,
    WorkerArguments,
    document_options,
    http_options,
    worker_options,
)
from duly.app_resources import DatabaseUrls, open_resources, start_embedded
from duly.core.errors import ConfigurationError
from duly.core.invariants import RunConditions, raise_violations, violations
from duly.core.job import DEVELOPMENT_ORG, Actor
from duly.db import migrate
from duly.deprecated_names import DeprecatedName
from duly.features.alerts.service import Alerts
from duly.features.api_keys.service import ApiKeys
from duly.features.audit import enrichment, verification
from duly.features.audit.service import Audit
from duly.features.dead_letters.service import DeadLetters
from duly.features.doctor.service import Doctor
from duly.features.doctor.target import DoctorSettings
from duly.features.events.service import Feed
from duly.features.job_results.service import Results
from duly.features.jobs.service import Jobs
from duly.features.limits.service import Limits
from duly.features.members.service import Members
from duly.features.metrics.service import DatabaseMetrics
from duly.features.orgs.service import Orgs
from duly.features.overview.service import Overview
from duly.features.queues.service import Queues
from duly.features.schedules.service import Schedules
from duly.jobs import registry
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.request_context import RequestContext
from duly.jobs.resources import Resources
from duly.maintenance import retention
from duly.maintenance.loop import run_chores
from duly.maintenance.reconcile import Reconciliation, reconcile
from duly.maintenance.retention import MAINTENANCE_SCHEDULES
from duly.settings import Settings
from duly.settings_sources import SettingArguments
from duly.worker.options import WorkerConnections, WorkerOptions
from duly.worker.worker import Worker

if TYPE_CHECKING:
    from fastapi import FastAPI

    from duly.apps.documents.service import Documents
    from duly.console import Extras
    from duly.features.bulk.service import Bulk
    from duly.features.notifications.service import Notifications
    from duly.features.subscriptions.service import Subscriptions
    from duly.features.webhooks.service import Webhooks
    from duly.http.options import May
    from duly.maintenance.loop import Chore

_MIN_BACKGROUND_TIMEOUT = 30.0
_MAX_BACKGROUND_CONNECTIONS = 4
_DEVELOPMENT_CONTEXT = RequestContext(org_id=DEVELOPMENT_ORG, actor=Actor.user("developer"))


class Duly(App):
    """An application with its settings: arguments win over the environment, that over the file.

    ```python
    app = Duly(database_url="postgresql://app@db/app", worker_slots=20)
    ```

    Without a database URL it uses the embedded server, with a development org and actor, so that jobs can be
    enqueued without `duly.context(...)`.
    """

    figures = DeprecatedName("database_metrics")
    keys = DeprecatedName("api_keys")
    watched = DeprecatedName("alerting")

    def __init__(self, settings: Settings | None = None, **arguments: Unpack[SettingArguments]) -> None:
        if settings is not None and arguments:
            raise ConfigurationError(
                f"both settings and {', '.join(arguments)}", field="settings", fix="pass one of them"
            )
        self.settings = settings or Settings.load(**arguments)
        super().__init__(self._open)

    def request_context(self) -> RequestContext:
        """Return the current context; on the embedded database with the development org and actor."""
        context = super().request_context()
        return context if self.settings.database_url else context.completed_by(_DEVELOPMENT_CONTEXT)

    @cached_property
    def database_urls(self) -> DatabaseUrls:
        """The URLs of the configured database, or of the embedded one, started and migrated."""
        url = self.settings.database_url
        if url:
            return DatabaseUrls(url, self.settings.database_direct_url or url)
        return start_embedded(self.settings.home, self.schemas)

    def migrate(self) -> list[str]:
        """Migrate the database to this version of the package; return the names of the applied migrations."""
        direct = self.database_urls.direct_url
        return [m.name for schema in (migrate.ENGINE, *self.schemas) for m in migrate.migrate(direct, schema)]

    @cached_property
    def jobs(self) -> Jobs:
        """List, explain and cancel jobs."""
        return Jobs(self)

    @cached_property
    def results(self) -> Results:
        """Read results by their permalinks."""
        return Results(self, self.settings.retention)

    @cached_property
    def overview(self) -> Overview:
        """Read the statistics of an org or of the whole installation."""
        return Overview(self)

    @cached_property
    def queues(self) -> Queues:
        """Manage queues: weights, pauses and statistics."""
        return Queues(self)

    @cached_property
    def limits(self) -> Limits:
        """Manage the limits of orgs and job types."""
        return Limits(self)

    @cached_property
    def dead_letters(self) -> DeadLetters:
        """List, replay and discard dead letters."""
        return DeadLetters(self)

    @cached_property
    def bulk(self) -> Bulk:
        """Change all jobs that match a filter, as a job."""
        from duly.features.bulk.service import Bulk

        return Bulk(self)

    @cached_property
    def schedules(self) -> Schedules:
        """Manage schedules."""
        return Schedules(self)

    @cached_property
    def feed(self) -> Feed:
        """Read the events feed of an org, in the order of commits."""
        return Feed(self)

    @cached_property
    def webhooks(self) -> Webhooks:
        """Manage webhook endpoints and their deliveries."""
        from duly.features.webhooks.allowed_destinations import AllowedUrls
        from duly.features.webhooks.service import Webhooks

        return Webhooks(self, AllowedUrls(self.settings.webhook_allow))

    @cached_property
    def orgs(self) -> Orgs:
        """Manage orgs and their projects."""
        return Orgs(self)

    @cached_property
    def members(self) -> Members:
        """Manage the members of orgs and their roles."""
        return Members(self)

    @cached_property
    def api_keys(self) -> ApiKeys:
        """Manage API keys."""
        return ApiKeys(self)

    @cached_property
    def audit(self) -> Audit:
        """Read the audit trail, and verify its seals."""
        return Audit(self)

    @cached_property
    def alerts(self) -> Alerts:
        """List and acknowledge alerts of an org or of the installation."""
        return Alerts(self)

    @cached_property
    def notifications(self) -> Notifications:
        """Send and list notifications, and manage their templates."""
        from duly.features.notifications.email import Email, MailServer
        from duly.features.notifications.service import Notifications

        made = Notifications(self, public_url=self.settings.public_url)
        if self.settings.smtp_url is not None:
            made.add_channel(
                "email", Email(MailServer.parse(self.settings.smtp_url, self.settings.mail_from))
            )
        return made

    @cached_property
    def subscriptions(self) -> Subscriptions:
        """Manage subscriptions to the end of jobs."""
        from duly.features.subscriptions.service import Subscriptions

        return Subscriptions(self)

    @cached_property
    def doctor(self) -> Doctor:
        """Check the installation: `await app.doctor.examine()`."""
        settings = DoctorSettings(
            database_urls=lambda: (self.database_urls.url, self.database_urls.direct_url),
            direct_is_set=self.settings.database_direct_url is not None,
            conditions=lambda: self._conditions(worker_options(self.settings)),
        )
        return Doctor(self, settings)

    def http_app(self, *, may: May | None = None, extras: Extras | None = None) -> FastAPI:
        """Return the HTTP service with its console, to run or to mount: `api.mount("/duly", app.http_app())`.

        `await may(principal, subject_id, action)` decides on access to jobs that have a subject.
        `extras` are pages of your own for the console.
        """
        try:
            from duly import console
            from duly.http.application import create_app
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                f"{error.name} is not installed", field="http", fix="install duly[http]"
            ) from None
        api = create_app(self, http_options(self.settings, may))
        console.install(api, extras)
        return api

    def include_analyze(self) -> None:
        """Include the analyze application: the job type `analyze.run`, and its routes in the HTTP service."""
        from duly.apps.analyze import declare

        declare(self)

    def include_documents(self, **arguments: Unpack[DocumentArguments]) -> None:
        """Include the documents application: its tables, job types, and routes in the HTTP service.

        Arguments win over the settings, and set options that have no setting, such as a `classifier`.
        """
        from duly.apps.documents.application import include

        include(self, document_options(self.settings, **arguments))

    @cached_property
    def documents(self) -> Documents:
        """Manage documents; includes the documents application if needed."""
        from duly.apps.documents.service import Documents

        self.include_documents()
        return Documents(self)

    def worker(
        self, *, when_stuck: Callable[[], None] | None = None, **arguments: Unpack[WorkerArguments]
    ) -> Worker:
        """Return a worker for the declared job types. Arguments win over the `worker_*` settings.

        ```python
        async with app.worker(slots=20):
            ...
        ```

        `when_stuck` is called when the event loop is blocked for longer than the lease.
        """
        self._declare_maintenance()
        options = worker_options(self.settings, **arguments)
        options.check()
        from duly import app_background as background

        background.alert_recipients(self.settings)
        raise_violations(
            violations({job.name: job.policy for job in self.registry}, self._conditions(options))
        )
        urls = self.database_urls
        direct = self.settings.database_direct_url is None
        opening = partial(open_resources, self.settings, urls.url)
        connections = WorkerConnections(
            urls.url, urls.direct_url, opening, open_engine=partial(opening, engine_only=True), direct=direct
        )
        beside = (
            partial(self._run_background, background.background_services)
            if self.settings.maintenance
            else None
        )
        return Worker(self, options, connections, when_stuck=when_stuck, beside=beside)

    async def reconcile(self, *, dry_run: bool = False) -> Reconciliation:
        """Check every active job once, and repair stale ones; with `dry_run`, only report them."""
        self._declare_maintenance()
        return await reconcile(self, dry_run=dry_run)

    @asynccontextmanager
    async def database_metrics(self) -> AsyncIterator[DatabaseMetrics]:
        """Read metrics of the database for Prometheus, on a connection of their own."""
        separate = self._with_own_resources(
            partial(open_resources, self.settings, self.database_urls.url, max_connections=1)
        )
        try:
            yield DatabaseMetrics(separate)
        finally:
            await separate.close()

    @asynccontextmanager
    async def alerting(self) -> AsyncIterator[None]:
        """Detect and deliver alerts in this process, too: without a worker, no other process does."""
        if not self.settings.maintenance:
            yield
            return
        self._declare_maintenance()
        from duly import app_background as background

        background.alert_recipients(self.settings)
        stop = asyncio.Event()
        services = asyncio.create_task(
            self._run_background(background.alerting_services, stop), name="duly-alerting"
        )
        try:
            yield
        finally:
            stop.set()
            await services

    def _with_own_resources(self, opener: Callable[[], Awaitable[Resources]]) -> App:
        """Return the same application with its own connections: handlers may hold all others."""
        separate = App(opener)
        separate.registry, separate.adapters = self.registry, self.adapters
        return separate

    async def _run_background(
        self, services: Callable[[App, Settings], list[Chore]], stop: asyncio.Event
    ) -> None:
        separate = self._with_own_resources(self._open_background)
        try:
            await run_chores(services(separate, self.settings), stop)
        finally:
            await separate.close()

    async def _open_background(self) -> Resources:
        resources = await open_resources(
            self.settings, self.database_urls.url, max_connections=_MAX_BACKGROUND_CONNECTIONS
        )
        # An open transaction of the application must not block the background services for ever.
        lease = self.settings.worker_lease.total_seconds()
        resources.database.session_timeout = max(lease, _MIN_BACKGROUND_TIMEOUT)
        return resources

    def _conditions(self, options: WorkerOptions) -> RunConditions:
        with_callbacks = frozenset(job.name for job in self.registry if job.failure_callbacks)
        return RunConditions(options.lease, options.heartbeat, self.settings.retention, with_callbacks)

    def _declare_maintenance(self) -> None:
        if MAINTENANCE_SCHEDULES[0].job_type not in self.registry:
            retention.declare(self, self.settings.retention)
        enrichment.declare(self)
        verification.declare(self, self.audit)
        from duly.features.bulk import job as bulk_job
        from duly.features.notifications import delivery_job

        bulk_job.declare(self)
        delivery_job.declare(self, self.notifications)

    async def _open(self) -> Resources:
        urls = await asyncio.to_thread(lambda: self.database_urls)
        await asyncio.to_thread(migrate.check, urls.direct_url, *self.schemas)
        resources = await open_resources(self.settings, urls.url)
        if not self.settings.database_url:
            await _create_development_org(resources)
        return resources


async def _create_development_org(resources: Resources) -> None:
    async with resources.database.engine() as conn:
        if await registry.create_org_if_missing(conn, DEVELOPMENT_ORG, "Development"):
            await job_store.record_audit_entry(
                conn,
                org_id=DEVELOPMENT_ORG,
                actor=Actor.system("duly"),
                action="org.created",
                target_type="org",
                target_id=str(DEVELOPMENT_ORG),
                detail={"name": "Development"},
            )
