"""Write the fixture of a release: the database of a small installation with active jobs.

    python -m tests.db.make_release tests/db/fixtures/release_X_Y_Z.sql.gz

The code of the checkout creates the database: run it in a checkout of the release.
"""

from __future__ import annotations

import asyncio
import gzip
import sys
import tempfile
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from duly import Actor, Cancel, Context, Duly, Fail, Failure, Retry, RetryPolicy, context
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.models import Grant
from duly.apps.documents.schema import SCHEMA
from duly.core.job import SYSTEM_ORG
from duly.core.principal import ROLE_SCOPES, Principal, Role, Scope
from duly.db.migrate import ENGINE
from duly.features.alerts.alerter import Alerter, AlertRecipients
from duly.features.alerts.thresholds import Thresholds
from duly.features.audit.sealer import Sealer
from duly.features.events.relay import Relay
from duly.features.notifications.dispatcher import NotificationDispatcher
from duly.features.schedules.scheduler import Scheduler
from duly.features.sessions.service import Sessions
from duly.features.webhooks.allowed_destinations import AllowedUrls
from duly.features.webhooks.deliverer import Deliverer, DeliveryOptions
from duly.maintenance.failure_callbacks import FailureCallbackRetrier
from duly.maintenance.retention import MAINTENANCE_SCHEDULES
from duly.testing import DatabaseCluster
from tests.apps.documents.stage import add, pieces
from tests.db.open_transactions import wait_for_transactions
from tests.db.release import Conn, dump
from tests.features.webhooks.receiver import receiving
from tests.worker.working import ONE_ATTEMPT, WAIT_TIMEOUT, claim_and_vanish, until, working

ACME, BAKERY, CLOSED = (uuid.UUID(f"0ace0000-0000-4000-8000-00000000000{n}") for n in (1, 2, 3))
ANNA, OPS = Actor.user("anna"), Actor.operator("ops")
WHY: dict[str, Any] = {"actor": OPS, "reason": "the installation is set up"}
LETTER = (
    "Mietvertrag\n\nZwischen Frau Anna Beispiel (Vermieterin) und Herrn Ben Muster (Mieter) wird ein "
    "Mietvertrag über die Wohnung Hauptstraße 7 geschlossen. Die Miete beträgt monatlich 950 Euro."
)


HOLDING = """
    select count(*) filter (where status = 'running') = 3 and count(*) filter (where status = 'partial') = 1
       and count(*) filter (where job_type = 'mail.send' and attempt = 1 and status = 'queued') = 1
    from duly.jobs
"""
FILE = """
    insert into documents.connector_files
        (org_id, connector_id, remote_id, revision, remote_path, document_id, version, job_id)
    values (%(org)s, %(connector)s, 'id:1', '1', '/a.txt', %(document)s, 1, duly.uuid7())
"""
MODEL = """
    insert into documents.class_models
        (org_id, model_version, sha256, labels, examples, accuracy, rules_accuracy, report, active)
    values (%(org)s, 'm-1', repeat('a', 64), '{invoice}', 40, 0.9, 0.95, '{}', false)
"""


async def build(ctx: Context, region: str) -> dict[str, str]:
    ctx.log.info("building", extra={"region": region})
    ctx.progress(50, "half of it")
    if region == "canceled":
        raise Cancel("no longer needed")
    if region == "blocked":
        raise Fail("the books are closed", code="books.closed", blocked=True)
    if region == "failed":
        raise Fail("there is no such region", code="region.unknown")
    await ctx.artifact(f"{region}.csv", b"a;b\n", content_type="text/csv")
    return {"region": region}


async def hold(ctx: Context, n: int) -> int:
    if n == 2:
        await ctx.partial({"page": 1}, percent=20)
    await asyncio.Event().wait()
    return n


async def check(ctx: Context, shops: list[str]) -> int:
    async for chunk in ctx.chunks(shops):
        async with chunk:
            if chunk.item == "closed":
                raise ValueError("no answer")
            chunk.result = {"shop": chunk.item, "price": 42}
    return len(await ctx.results())


async def book(number: str) -> None:
    raise ValueError(f"no account for {number}")


async def on_dead(failure: Failure, conn: Any) -> None:
    if failure.payload["number"] == "owed":
        raise ConnectionError("the books do not answer")


async def send(to: str) -> None:
    raise Retry("the server is busy", after=timedelta(minutes=1))


async def count(warehouse: str = "north") -> None: ...


async def bring_in(n: int) -> None: ...


class Jobs:
    """The job types of the installation; the payload decides how a job ends."""

    def __init__(self, app: Duly) -> None:
        self.build = app.job("report.build", queue="q:planning")(build)
        self.hold = app.job("report.hold")(hold)
        self.check = app.job("prices.check", allows_partial=True)(check)
        self.book = app.job("invoice.book", retry=ONE_ATTEMPT, on_dead=on_dead)(book)
        self.send = app.job("mail.send", dependency="smtp", retry=RetryPolicy(max_attempts=3))(send)
        self.count = app.job("stock.check", category="maintenance")(count)
        self.bring_in = app.job("import.run", queue="q:exports")(bring_in)


async def settle_in(app: Duly) -> None:
    """Create orgs, members, API keys, sessions, limits and queues."""
    await app.orgs.create(ACME, "Acme", **WHY)
    await app.orgs.create(BAKERY, "Bäckerei Sommer", **WHY)
    await app.orgs.create(CLOSED, "Closed Ltd", **WHY)
    await app.orgs.suspend(CLOSED, **WHY)
    await app.orgs.create_project(ACME, uuid.UUID(int=7), "Berlin", **WHY)
    for user, role in (("anna", Role.ADMIN), ("ben", Role.OPERATOR), ("caro", Role.VIEWER)):
        await app.members.set(ACME, user, role, **WHY)
    key = await app.api_keys.create(ACME, "ci", ROLE_SCOPES[Role.ADMIN], **WHY)
    await app.api_keys.rotate(ACME, key.key.key_id, **WHY)
    old = await app.api_keys.create(BAKERY, "old", [Scope.READ], **WHY)
    await app.api_keys.revoke(BAKERY, old.key.key_id, **WHY)
    logins = Sessions(app)
    by_key = Actor("api_key", key.key.key_id)
    for org, actor in ((ACME, ANNA), (ACME, by_key), (SYSTEM_ORG, OPS)):
        await logins.open(Principal(org, actor, ROLE_SCOPES[Role.ADMIN]))
    await app.limits.set(ACME, max_waiting=1000, **WHY)
    await app.limits.set(None, "mail.send", starts_per_second=50.0, burst=100, **WHY)
    await app.limits.set(ACME, "report.hold", max_running=3, **WHY)
    await app.queues.create("q:reports", 3, **WHY)
    await app.queues.set_alerts("q:default", depth=2, **WHY)


async def plan(app: Duly, sql: Conn) -> None:
    """Create schedules and their ticks: run, missed, paused, deleted."""
    for due in MAINTENANCE_SCHEDULES:
        await app.schedules.create(SYSTEM_ORG, due.name, cron=due.cron, job_type=due.job_type, **WHY)
    for name, missed in (("stock", "once"), ("skipped", "skip"), ("paused", "once"), ("deleted", "once")):
        await app.schedules.create(
            ACME, name, cron="0 6 * * *", job_type="stock.check", timezone="Europe/Berlin", missed=missed,
            payload={"warehouse": name}, **WHY,
        )  # fmt: skip
    await app.schedules.pause(ACME, "paused", ANNA, "summer break")
    await app.schedules.delete(ACME, "deleted", ANNA, "the warehouse is gone")
    # As if they had been created three days ago.
    sql.execute(
        "update duly.schedules set next_tick_at = now() - interval '3 days', "
        "counted_until = now() - interval '3 days' where org_id = %s and deleted_at is null",
        [ACME],
    )
    await until_idle(Scheduler(app))
    await app.schedules.run_now(ACME, "stock", ANNA, "now")


async def tell(app: Duly, url: str) -> None:
    """Create endpoints, subscriptions, templates, preferences and notifications."""
    secret = "whsec_" + "Zml4dHVyZSBvZiBhIHJlbGVhc2UsIG5vIHNlY3JldA=="
    for path, events in (("/200", ["job.completed", "job.partial"]), ("/500", ["job.deadlettered"])):
        await app.webhooks.create(ACME, url + path, events, description=path, secret=secret, **WHY)
    off = await app.webhooks.create(BAKERY, "https://hooks.example.com/duly", ["*"], secret=secret, **WHY)
    await app.webhooks.disable(BAKERY, off.endpoint.endpoint_id, **WHY)
    await app.subscriptions.subscribe(ACME, "in_app:anna", outcomes=["canceled", "failed"], actor=ANNA)
    await app.subscriptions.subscribe(ACME, "email:ops@example.com", job_type="mail.send", actor=ANNA)
    words = {"subject": "Hallo {{ name }}", "body": "Guten Tag, {{ name }}."}
    await app.notifications.templates.set(ACME, "hello", "de", **words, **WHY)
    await app.notifications.preferences.set(ACME, "in_app:ben", wanted=False, actor=ANNA)
    await app.notifications.suppressions.add(ACME, "email:gone@example.com", **WHY)
    to = ["in_app:anna", "in_app:ben", "email:gone@example.com", "email:ops@example.com"]
    await app.notifications.send(ACME, "hello", {"name": "Anna"}, to=to, locale="de", actor=ANNA)
    later = datetime(2999, 1, 1, tzinfo=UTC)
    await app.notifications.send(
        ACME, "hello", {"name": "Ben"}, to=["in_app:anna"], locale="de", scheduled_for=later, actor=ANNA
    )


async def work(app: Duly, jobs: Jobs) -> None:
    """Run jobs to every outcome; resolve some dead letters."""
    with context(org_id=ACME, actor=ANNA, request_id="req-1"):
        ended = await app.enqueue_many(
            [
                *(jobs.build.call(region) for region in ("DE", "AT", "canceled", "blocked", "failed")),
                jobs.check.call(["north", "south"]),
                jobs.check.call(["north", "closed"]),
                *(jobs.book.call(number) for number in ("open", "owed", "replayed", "fixed", "discarded")),
            ]
        )
        tied = jobs.build.options(
            project_id=uuid.UUID(int=7), subject_id="order:7", run_identity="DE-7", metadata={"from": "shop"},
            idempotency_key="order-7", traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )  # fmt: skip
        ended.append(await tied.enqueue("CH"))
        unwanted = await jobs.bring_in.enqueue(0)
        await unwanted.cancel("it was a mistake")
    with context(org_id=BAKERY, actor=Actor.system("shop"), request_id="req-2"):
        ended.append(await jobs.build.enqueue("Kiel"))
    async with working(app):
        for handle in ended:
            await handle.wait(WAIT_TIMEOUT)
    replayed, fixed, discarded = (handle.job_id for handle in ended[9:12])
    again = [
        await app.dead_letters.replay(ACME, replayed, ANNA, "the account is there now"),
        await app.dead_letters.fix(ACME, fixed, {"number": "right"}, ANNA, "a typo"),
        await app.dead_letters.rerun(ACME, ended[0].job_id, ANNA, "once more"),
    ]
    await app.dead_letters.discard(ACME, discarded, ANNA, "not worth it")
    async with working(app):
        for handle in again:
            await handle.wait(WAIT_TIMEOUT)
    await FailureCallbackRetrier(app).once()


async def file(app: Duly, sql: Conn) -> None:
    """Create documents with extraction, classification and search; folders, uploads and connectors."""
    anna = DocumentPrincipal(ACME, ANNA)
    folder = await app.documents.folders.create(anna, "Verträge")
    within = await app.documents.folders.create(anna, "Wohnungen", folder.node_id)
    await app.documents.folders.set_grants(anna, within.node_id, [Grant(principal="user:ben", level="read")])
    await app.documents.classification.set_filing(anna, "rental_contract", within.node_id)
    filed = await add(app, anna, LETTER, "Wohnung.txt", engine="fast", node_id=folder.node_id)
    await add(app, anna, LETTER + "\nNachtrag.", document_id=filed.document_id, engine="fast")
    await add(app, anna, "Rechnung Nr. 7\nBetrag: 70 Euro", "Rechnung.txt")
    async with working(app):
        for one in await app.documents.extractions(anna, filed.document_id):
            with suppress(Exception):
                await app.handle(one.job_id, org_id=ACME).wait(WAIT_TIMEOUT)
    await app.documents.classification.confirm(anna, filed.document_id, "rental_contract")
    upload = await app.documents.uploads.begin(anna, "a" * 64, 9_000_000)
    await app.documents.uploads.put(anna, upload.upload_id, 1, pieces(bytes(upload.part_size)))
    taken = await app.documents.connectors.create(anna, "dropbox", "Dropbox", "env:DROPBOX_TOKEN")
    ids = {"org": ACME, "connector": taken.connector_id, "document": filed.document_id}
    sql.execute("insert into documents.connector_cursors values (%(org)s, %(connector)s, '/', 'c-1')", ids)
    sql.execute(FILE, ids)
    sql.execute(MODEL, ids)


async def leave_open(app: Duly, jobs: Jobs, sql: Conn) -> None:
    """Leave jobs queued in every way."""
    await app.queues.pause("q:exports", actor=OPS, reason="the disk is full")
    await app.limits.pause(BAKERY, "report.build", actor=OPS, reason="they have not paid")
    with context(org_id=ACME, actor=ANNA, request_id="req-3"):
        await app.enqueue_many([jobs.build.call(region) for region in ("NL", "DK", "SE")])
        await jobs.build.options(run_identity="PL", priority=90).enqueue("PL")
        await jobs.bring_in.enqueue(1)
        for at in (datetime.now(UTC) + timedelta(minutes=1), datetime(2999, 1, 1, tzinfo=UTC)):
            await jobs.count.options(scheduled_for=at).enqueue(f"at-{at.year}")
    with context(org_id=BAKERY, actor=Actor.system("shop"), request_id="req-4"):
        await jobs.build.enqueue("Plön")
    sql.execute("insert into duly.released_blobs values ('blob:" + str(ACME) + "/gone')")
    sql.execute("insert into duly.event_drops (dropped_through) values ('3')")


async def until_idle(chore: Any) -> None:
    while await chore.once() == timedelta(0):
        pass


async def keep_up(app: Duly, sql: Conn) -> None:
    """Relay, deliver, alert on and seal everything so far."""
    wait_for_transactions(sql)
    recipients = AlertRecipients((("in_app", "anna"),), "de")
    await Alerter(app, Thresholds(queue_depth=2), recipients).once()
    await until_idle(Relay(app))
    await until_idle(NotificationDispatcher(app))
    deliverer = Deliverer(app, AllowedUrls(["127.0.0.1"]), DeliveryOptions(timeout=timedelta(seconds=5)))
    await until_idle(deliverer)
    await deliverer.end()
    await until_idle(Sealer(app))


async def live(app: Duly, url: str) -> str:
    """Run the installation, and dump it while a worker holds some jobs."""
    app.include_documents()
    app.migrate()
    jobs = Jobs(app)
    async with app, receiving() as receiver:
        with psycopg.connect(url, autocommit=True) as sql:
            await app.publish()
            await settle_in(app)
            await tell(app, receiver.url(""))
            await work(app, jobs)
            await plan(app, sql)
            await file(app, sql)
            with context(org_id=ACME, actor=ANNA, request_id="req-5"):
                lost = await jobs.check.enqueue(["lost"])
                await claim_and_vanish(app, lost.job_id)
                held = await app.enqueue_many([jobs.hold.call(n) for n in (1, 2, 3)])
                await jobs.send.enqueue("ben@example.com")
            async with app.worker(name="worker", queues=("q:default",), drain=timedelta(milliseconds=1)):
                await until(sql, HOLDING)
                await leave_open(app, jobs, sql)
                with context(actor=ANNA):
                    await held[2].cancel("they changed their mind")
                await keep_up(app, sql)
                await app.members.remove(ACME, "caro", **WHY)  # audited, but not sealed yet
                with psycopg.connect(url) as conn:
                    conn.execute("set transaction isolation level repeatable read")
                    conn.execute("set timezone = 'UTC'")
                    return dump(conn, [ENGINE, SCHEMA])


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as home:
        cluster = DatabaseCluster(Path(home, "server"))
        with cluster.fresh(migrated=False) as made:
            app = Duly(
                database_url=made.url,
                blobs_url=str(Path(home, "blobs")),
                maintenance=False,
                webhook_allow=["127.0.0.1"],
            )
            text = asyncio.run(live(app, made.direct_url))
        cluster.close(wait=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
