"""The alerter: an alert fires once, resolves once, and is notified once each time."""

from __future__ import annotations

import asyncio
import logging
import uuid
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, context
from duly.core.errors import ConfigurationError
from duly.core.job import SYSTEM_ORG
from duly.features.alerts import alerter as alerter_module
from duly.features.alerts.alerter import Alerter, AlertRecipients
from duly.features.alerts.thresholds import Thresholds
from duly.testing import FreshDatabase
from tests.db.tenancy import insert
from tests.worker.working import ONE_ATTEMPT, WAIT_TIMEOUT, claim_and_vanish, until, working

ANNA = Actor.operator("anna")
EVERY = timedelta(seconds=15)
OPS = AlertRecipients((("email", "ops@example.com"), ("in_app", "anna")), "de")
Sql = psycopg.Connection[Any]


@pytest.fixture
def alerter(app: Duly) -> Alerter:
    return Alerter(app, Thresholds(queue_depth=2), OPS)


@pytest.fixture
async def dying(app: Duly, org: uuid.UUID) -> Any:
    """Let jobs become dead letters; return their ids."""

    @app.job("test.die", retry=ONE_ATTEMPT)
    async def die(n: int) -> None:
        raise ValueError("no")

    async def kill(count: int) -> list[uuid.UUID]:
        with context(org_id=org, actor=Actor.user("u1")):
            handles = await app.enqueue_many([die.call(n) for n in range(count)])
            async with working(app):
                for handle in handles:
                    await handle.wait(WAIT_TIMEOUT)
        return [handle.job_id for handle in handles]

    return kill


@pytest.fixture
async def backlog(app: Duly, org: uuid.UUID) -> None:
    """Three queued jobs, and no worker."""

    @app.job("test.wait")
    async def wait(n: int) -> None: ...

    with context(org_id=org, actor=Actor.user("u1")):
        await app.enqueue_many([wait.call(n) for n in range(3)])


def notified(sql: Sql) -> list[tuple[Any, ...]]:
    query = """
        select n.org_id, n.channel, n.template_key, n.payload ->> 'kind', n.locale from duly.notifications n
        order by n.template_key, n.channel"""
    return sql.execute(query).fetchall()


def read_alerts(sql: Sql, columns: str = "kind, target, resolved_at is null") -> list[tuple[Any, ...]]:
    return sql.execute(f"select {columns} from duly.alerts order by kind, fired_at").fetchall()


def let_time_pass(sql: Sql) -> None:
    """Let the alerts have last fired two minutes earlier."""
    sql.execute("update duly.alerts set seen_at = seen_at - interval '2 minutes'")


async def test_an_alert_fires_and_resolves_once_and_both_are_notified_once(
    app: Duly, alerter: Alerter, backlog: None, sql: Sql, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "duly.maintenance")
    for _ in range(3):
        assert await alerter.once() == EVERY
    assert read_alerts(sql) == [("queue_depth", "q:default", True)]
    firing = [(SYSTEM_ORG, channel, "alert.firing", "queue_depth", "de") for channel in ("email", "in_app")]
    assert notified(sql) == firing
    sql.execute(
        "update duly.ready set queue = 'q:planning' where job_id in (select job_id from duly.ready limit 1)"
    )
    await alerter.once()
    assert read_alerts(sql) == [("queue_depth", "q:default", True)], "the condition may return in a moment"
    let_time_pass(sql)
    for _ in range(2):
        await alerter.once()
    assert read_alerts(sql) == [("queue_depth", "q:default", False)]
    over = [(SYSTEM_ORG, channel, "alert.resolved", "queue_depth", "de") for channel in ("email", "in_app")]
    assert notified(sql) == firing + over
    levels = [(record.levelname, "resolved" in record.message) for record in caplog.records]
    assert levels == [("WARNING", False), ("INFO", True)]
    sql.execute("update duly.ready set queue = 'q:default'")
    await alerter.once()
    assert read_alerts(sql) == [("queue_depth", "q:default", False), ("queue_depth", "q:default", True)]
    assert len(notified(sql)) == 6, "a condition that returns is another alert"


async def test_concurrent_alerters_fire_an_alert_once(app: Duly, backlog: None, sql: Sql) -> None:
    alerters = [Alerter(app, Thresholds(queue_depth=2), OPS) for _ in range(8)]
    await asyncio.gather(*(alerter.once() for alerter in alerters))
    assert (len(read_alerts(sql)), len(notified(sql))) == (1, 2)
    with sql.transaction():
        sql.execute("select pg_advisory_xact_lock(hashtextextended('duly.alerts', 0))")
        let_time_pass(sql)
        sql.execute("delete from duly.ready")
        assert await alerters[0].once() == EVERY
        assert read_alerts(sql) == [("queue_depth", "q:default", True)], "another alerter has the lock"


async def test_a_dead_letter_has_one_alert_in_its_org_that_resolves_with_it(
    app: Duly, alerter: Alerter, org: uuid.UUID, dying: Any, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerter_module, "_MAX_DEAD_LETTERS", 2)
    early, first, second = await dying(3)
    await app.dead_letters.discard(org, early, ANNA, "known")
    assert [await alerter.once() for _ in range(3)] == [timedelta(0), EVERY, EVERY]
    dead = read_alerts(sql, "kind, org_id, target, severity, resolved_at is null, told_at")
    assert sorted(dead) == sorted(
        ("dead_letter", org, str(job), "critical", job != early, None) for job in (early, first, second)
    )
    [(summary, detail)] = sql.execute(
        "select summary, detail from duly.alerts where target = %s", [str(first)]
    ).fetchall()
    assert (summary, detail["job_type"]) == ("test.die is a dead letter: value_error", "test.die")
    assert notified(sql) == [], "orgs subscribe to notifications of their jobs"
    await app.dead_letters.replay(org, first, ANNA, "fixed")
    assert read_alerts(sql, "target, resolved_at is null") != dead
    open_ones = (await app.alerts.list(org)).alerts
    assert [alert.target for alert in open_ones] == [str(second)]
    let_time_pass(sql)
    await alerter.once()
    [still] = (await app.alerts.list(org)).alerts
    assert still.alert_id == open_ones[0].alert_id, "it is open as long as the dead letter is"
    # As a process of an older release does it.
    sql.execute(
        "update duly.dead_letters set resolution = 'discarded', resolved_at = now(), "
        "resolved_by = 'user:u1', resolve_reason = 'known' where resolution is null"
    )
    for _ in range(2):  # one of these may restart the scan
        await alerter.once()
    assert (await app.alerts.list(org)).alerts == ()
    page = await app.alerts.list(org, everything=True, limit=2)
    rest = await app.alerts.list(org, everything=True, limit=2, after=page.after)
    assert len({alert.alert_id for alert in (*page.alerts, *rest.alerts)}) == 3
    assert (await app.alerts.list()).alerts == ()


async def test_operators_are_notified_of_many_dead_letters_but_not_of_single_ones(
    app: Duly, dying: Any, sql: Sql
) -> None:
    """Else a notification that becomes a dead letter itself would cause the next one."""
    await dying(3)
    sql.execute("update duly.dead_letters set org_id = %s", [SYSTEM_ORG])
    alerter = Alerter(app, Thresholds(dead_per_hour=2), OPS)
    for _ in range(2):
        await alerter.once()
    assert {kind for *_, kind, _ in notified(sql)} == {"dead_rate"}
    assert len(notified(sql)) == 2
    [(measured, detail)] = read_alerts(sql, "measured, detail")[3:]
    assert (measured, detail) == (3, {"queues": {"q:default": 3}})


async def test_no_worker_fires_without_a_living_worker_and_resolves_with_one(
    app: Duly, alerter: Alerter, org: uuid.UUID, sql: Sql
) -> None:
    async with working(app):
        await alerter.once()
    await alerter.once()
    assert read_alerts(sql) == [], "not at once"
    ago = "now() - interval '6 minutes'"
    sql.execute(f"update duly.workers set stopped_at = {ago}, heartbeat_at = {ago}")
    await alerter.once()
    assert read_alerts(sql) == [("no_worker", "installation", True)]
    async with working(app):
        let_time_pass(sql)
        await alerter.once()
    assert read_alerts(sql) == [("no_worker", "installation", False)]


async def test_stale_runs_fires_when_the_reconciler_should_have_repaired_a_job(
    app: Duly, backlog: None, sql: Sql
) -> None:
    sql.execute(
        "delete from duly.ready where job_id in (select job_id from duly.ready order by job_id offset 1)"
    )
    [(job,)] = sql.execute("select job_id from duly.ready").fetchall()
    await claim_and_vanish(app, job)
    alerter = Alerter(app, Thresholds(), grace=timedelta(minutes=1))
    for age, expected in (("40 seconds", []), ("3 minutes", [("stale_runs", "installation", True)])):
        sql.execute(
            f"update duly.workers set heartbeat_at = now() - interval '{age}', lease = interval '30 seconds'"
        )
        sql.execute("update duly.job_states set attempt_started_at = now() - interval '1 hour'")
        await alerter.once()
        assert read_alerts(sql) == expected, age


async def test_a_failing_webhook_and_late_events_fire(
    app: Duly, alerter: Alerter, org: uuid.UUID, backlog: None, sql: Sql
) -> None:
    sql.execute("delete from duly.ready")
    insert(sql, "webhook_endpoints", org, url="https://u:token@a.example/secret", failures=9)
    await alerter.once()
    assert read_alerts(sql) == [], "the circuit breaker is still closed"
    sql.execute("update duly.webhook_endpoints set failing_since = now(), shut_until = now()")
    sql.execute("update duly.event_batches set occurred_at = now() - interval '2 minutes'")
    await alerter.once()
    [endpoint] = (await app.alerts.list(org)).alerts
    assert (endpoint.kind, endpoint.severity) == ("webhook_failing", "warning")
    assert "token" not in f"{endpoint}"
    assert [alert.kind for alert in (await app.alerts.list()).alerts] == ["relay_lag"]
    sql.execute("update duly.webhook_endpoints set disabled_at = now(), disabled_by = 'system:duly'")
    await alerter.once()
    [endpoint] = (await app.alerts.list(org)).alerts
    assert (endpoint.severity, endpoint.summary) == (
        "critical",
        "the webhook at a.example was disabled after 9 failures",
    )
    sql.execute("update duly.webhook_endpoints set disabled_by = 'user:u1'")
    let_time_pass(sql)
    await alerter.once()
    assert (await app.alerts.list(org)).alerts == (), "the user who disabled it knows"


async def test_a_queue_may_have_its_own_thresholds(app: Duly, backlog: None, sql: Sql) -> None:
    alerter = Alerter(app, Thresholds(), OPS)
    await alerter.once()
    assert read_alerts(sql) == []
    await app.queues.set_alerts("q:default", depth=2, actor=ANNA, reason="it must be quick")
    await alerter.once()
    sql.execute("update duly.job_records set run_at = now() - interval '10 seconds'")
    await app.queues.set_alerts("q:default", wait=timedelta(seconds=5), actor=ANNA, reason="very quick")
    await alerter.once()
    assert read_alerts(sql, "kind, threshold") == [("oldest_age", 5), ("queue_depth", 2)]
    await app.queues.set_alerts("q:default", depth=None, wait=None, actor=ANNA, reason="as before")
    let_time_pass(sql)
    await alerter.once()
    assert {open_ for *_, open_ in read_alerts(sql)} == {False}


async def test_a_service_without_any_worker_fires_and_notifies(fresh: FreshDatabase, sql: Sql) -> None:
    sql.execute(
        "insert into duly.workers "
        "(worker_id, name, host, pid, version, layout, queues, slots, lease, heartbeat_at) values "
        "(gen_random_uuid(), 'w', 'h', 1, '0', 4, '{q:default}', 1, '30 s', now() - interval '6 minutes')"
    )
    app = Duly(
        database_url=fresh.url, database_direct_url=fresh.direct_url, alert_recipients=("in_app:anna",)
    )
    async with app, app.alerting():
        await until(sql, "select exists (select from duly.notifications where delivery_status = 'sent')")
    [(channel, recipient, subject)] = sql.execute(
        "select channel, recipient, subject from duly.notifications"
    ).fetchall()
    assert (channel, recipient) == ("in_app", "anna")
    assert subject.startswith("[critical] no worker has been alive for 0:06:0")


def test_invalid_recipients_are_refused_by_the_name_of_their_setting(fresh: FreshDatabase) -> None:
    app = Duly(database_url=fresh.url, alert_recipients=("email:invalid",))
    with pytest.raises(ConfigurationError) as caught:
        app.worker()
    assert caught.value.field == "alert_recipients"
