"""Where the objects meet: settings become a database, a blob store and an application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from duly.blobs import BlobStore
from duly.client.app import App
from duly.client.ground import Ground
from duly.client.outbox import Outbox
from duly.client.wake import Waker
from duly.control.audit import Audit
from duly.control.deadletter import DeadLetters
from duly.control.doctor import Circumstances, Doctor
from duly.control.feed import Feed
from duly.control.jobs import Jobs
from duly.control.keys import Keys
from duly.control.limits import Limits
from duly.control.members import Members
from duly.control.orgs import Orgs
from duly.control.overview import Overview
from duly.control.queues import Queues
from duly.control.results import Results
from duly.control.schedules import Schedules
from duly.devdb import Server, open_server
from duly.devdb.errors import DevdbError
from duly.devdb.places import prepare_home
from duly.model.errors import ConfigurationError, StoreUnavailable
from duly.model.invariants import Conditions, refuse, violations
from duly.model.job import Actor
from duly.model.system import SYSTEM_ORG
from duly.settings import Settings
from duly.store import migrate
from duly.store.pool import PoolSize
from duly.store.session import Database
from duly.upkeep import maintenance
from duly.upkeep.adapters import AdapterSync
from duly.upkeep.loop import Chore, keep_up
from duly.upkeep.maintenance import MAINTENANCE_SCHEDULES
from duly.upkeep.payer import Payer
from duly.upkeep.reaper import Reaper
from duly.upkeep.reconciler import Reconciler
from duly.upkeep.reconciliation import Reconciliation, reconcile
from duly.upkeep.scheduler import Scheduler
from duly.upkeep.sealer import Sealer
from duly.upkeep.tidier import Tidier
from duly.worker.options import WorkerOptions
from duly.worker.worker import Places, Worker

if TYPE_CHECKING:
    from fastapi import FastAPI

    from duly.http.options import HttpOptions, May

_EMBEDDED_NAME = "duly"
_CHORE_LIMIT = 30.0
_CHORES_AT_ONCE = 4


class Place(NamedTuple):
    """Where the database is."""

    url: str
    direct_url: str
    server: Server | None = None
    """The lease on the embedded server, if that is what we use."""


class Duly(App):
    """An application, wired by its settings: arguments win over the environment, that over the file."""

    def __init__(self, settings: Settings | None = None, **overrides: Any) -> None:
        self.settings = settings or Settings.load(**overrides)
        super().__init__(self._open)

    @cached_property
    def place(self) -> Place:
        """The database that the settings name, or the embedded one, started and migrated."""
        url = self.settings.database_url
        return Place(url, self.settings.database_direct_url or url) if url else _embedded(self.settings.home)

    def migrate(self) -> list[str]:
        """Bring the database to this package's version; the names of what was applied."""
        return [m.name for m in migrate.migrate(self.place.direct_url)]

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
    def schedules(self) -> Schedules:
        """What is to be done again and again."""
        return Schedules(self)

    @cached_property
    def feed(self) -> Feed:
        """Every event of an org, in the order of commits."""
        return Feed(self)

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
    def doctor(self) -> Doctor:
        """Looks at the installation and says what is wrong with it: `await app.doctor.examine()`."""
        around = Circumstances(
            addresses=lambda: (self.place.url, self.place.direct_url),
            direct_is_set=self.settings.database_direct_url is not None,
            conditions=lambda: self._conditions(_worker_options(self.settings)),
        )
        return Doctor(self, around)

    def http_app(self, *, may: May | None = None) -> FastAPI:
        """The HTTP service, to be run by itself or mounted: `shop.mount("/duly", app.http_app())`.

        `may` is asked about jobs that have a subject: `await may(principal, subject_id, action)`.
        """
        try:
            from duly.http.app import create_app
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                f"{error.name} is not installed", field="http", fix="install duly[http]"
            ) from None
        return create_app(self, _http_options(self.settings, may))

    def include_analyze(self) -> None:
        """Have analyses done: the job type `analyze.run`, and its routes in the HTTP service."""
        from duly.analyze import declare

        declare(self)

    def worker(self, *, when_stuck: Callable[[], None] | None = None, **choices: Any) -> Worker:
        """A worker for the job types declared here: `async with app.worker(): ...`."""
        self._declare_maintenance()
        options = replace(_worker_options(self.settings), **choices)
        options.check()
        refuse(violations({job.name: job.policy for job in self.registry}, self._conditions(options)))
        place = self.place
        direct = self.settings.database_direct_url is None
        opening = partial(open_ground, self.settings, place.url)
        places = Places(
            place.url, place.direct_url, opening, open_engine=partial(opening, engine=True), direct=direct
        )
        beside = self._keep_up if self.settings.upkeep else None
        return Worker(self, options, places, when_stuck=when_stuck, beside=beside)

    async def reconcile(self, *, dry_run: bool = False) -> Reconciliation:
        """Look at every active job once, and put right what cannot be believed; or only say what that is."""
        self._declare_maintenance()
        return await reconcile(self, dry_run=dry_run)

    async def _keep_up(self, stop: asyncio.Event) -> None:
        """With connections of its own: handlers may hold all those of the application."""
        aside = App(self._open_aside)
        aside.registry, aside.adapters = self.registry, self.adapters
        try:
            await keep_up(_chores(aside, self.settings), stop)
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

    async def _open(self) -> Ground:
        place = await asyncio.to_thread(lambda: self.place)
        await asyncio.to_thread(migrate.check, place.direct_url)
        return await open_ground(self.settings, place.url)


def _chores(app: App, settings: Settings) -> list[Chore]:
    """What is to be done beside the jobs; every worker's process does them."""
    return [
        Reaper(app, grace=max(settings.worker_heartbeat, settings.worker_lease / 6)),
        Reconciler(app, settings.reconcile_every),
        AdapterSync(app, settings.reconcile_every),
        Payer(app),
        Scheduler(app),
        Sealer(app),
        Tidier(app),
        _Planner(Schedules(app)),
    ]


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


async def open_ground(
    settings: Settings, url: str, *, engine: bool = False, most: int | None = None
) -> Ground:
    """The database and the blobs that the settings name, opened for the running loop."""
    blobs = _blobs(settings)
    largest = min(settings.pool_max, most or settings.pool_max)
    size = PoolSize(min(settings.pool_min, largest), largest, settings.pool_patience)
    pooled = settings.database_direct_url is not None
    database = Database(url, pooled=pooled, size=size, engine=engine)
    await database.open()
    waker = Waker(database)
    return Ground(database, blobs, settings.payload_inline_max, waker, Outbox(database, waker))


def _worker_options(settings: Settings) -> WorkerOptions:
    return WorkerOptions(
        queues=settings.worker_queues,
        slots=settings.worker_slots,
        threads=settings.worker_threads,
        isolated=settings.worker_isolated,
        lease=settings.worker_lease,
        heartbeat=settings.worker_heartbeat,
        poll=settings.worker_poll,
        drain=settings.worker_drain,
        cancel_grace=settings.cancel_grace,
        retries_per_second=settings.retries_per_second,
        retry_burst=settings.retry_burst,
        result_max=settings.result_max,
    )


def _http_options(settings: Settings, may: May | None) -> HttpOptions:
    from duly.http.options import HttpOptions
    from duly.http.tokens import Issuer

    issuers = (
        ()
        if settings.token_issuer is None
        else (
            Issuer(
                settings.token_issuer,
                settings.token_audience,
                org_claim=settings.token_org_claim,
                platform_claim=settings.token_platform_claim,
            ),
        )
    )
    return HttpOptions(
        public_url=settings.public_url,
        issuers=issuers,
        may=may,
        keep=settings.retention,
        requests_per_second=settings.http_requests_per_second,
        burst=settings.http_burst,
    )


def _blobs(settings: Settings) -> BlobStore:
    place = settings.blobs_url or prepare_home(settings.home) / "blobs"
    try:
        return BlobStore(place)
    except Exception as error:
        raise ConfigurationError(
            str(error), field="blobs_url", fix="name a folder, s3://, gs:// or az://"
        ) from error


def _embedded(home: Path | None) -> Place:
    try:
        server = open_server(home)
    except DevdbError as error:
        raise StoreUnavailable(str(error), fix="or name a PostgreSQL by DULY_DATABASE_URL") from error
    with psycopg.connect(server.dsn(), autocommit=True) as conn, suppress(psycopg.errors.DuplicateDatabase):
        conn.execute(f"create database {_EMBEDDED_NAME}")
    url = server.dsn(_EMBEDDED_NAME)
    migrate.migrate(url)
    return Place(url, url, server)
