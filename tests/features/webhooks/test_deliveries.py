"""The delivery log: listing, filtering and resending."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime

import psycopg
import pytest

from duly import errors
from duly.features.webhooks import deliveries as deliveries_module
from duly.features.webhooks.models import Endpoint
from duly.features.webhooks.service import Webhooks
from duly.testing import FreshDatabase
from tests.features.schedules.scheduler_clock import NOON, Clock
from tests.features.webhooks.sample_deliveries import HOUR, URL, WHY, audited, state, write
from tests.worker.working import until

WAITING = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


async def test_the_log_lists_the_newest_first_in_pages_and_by_filter(
    webhooks: Webhooks, org: uuid.UUID, endpoint: Endpoint, sql: psycopg.Connection
) -> None:
    log, which, clock = webhooks.deliveries, endpoint.endpoint_id, Clock(sql, NOON)
    write(sql, endpoint, "delivered", "failed", event_type="job.failed")
    clock.advance(HOUR)
    job = write(sql, endpoint, "delivered", "pending")
    write(sql, (await webhooks.create(org, URL, ["*"], **WHY)).endpoint, "failed")
    sent = await log.test(org, which, **WHY)
    assert (sent.event_type, sent.event_seq, sent.status, sent.tries) == ("webhook.test", 1, "pending", 0)

    everything = (await log.list(org, which)).deliveries
    kinds = [(one.event_type, one.event_seq) for one in everything]
    assert kinds == [
        ("webhook.test", 1),
        *(("job.completed", n) for n in (2, 1)),
        *(("job.failed", n) for n in (2, 1)),
    ]
    paged, after = [], None
    while after or not paged:
        page = await log.list(org, which, limit=2, after=after)
        paged, after = [*paged, *page.deliveries], page.after
    assert tuple(paged) == everything
    for only, expected in (
        ({"status": "pending"}, [0, 1]),
        ({"event_type": "job.failed"}, [3, 4]),
        ({"job_id": job}, [1, 2]),
        ({"job_id": job, "status": "failed"}, []),
    ):
        chosen = (await log.list(org, which, **only)).deliveries
        assert [everything.index(one) for one in chosen] == expected, only
    for one in everything:
        assert await log.get(org, which, one.message_id) == one
    assert [one.message_id[:3] for one in everything] == ["msg", "evt", "evt", "evt", "evt"]
    assert everything[1].try_log == ({"error": "HTTP 500"},)
    for wrong in ("x", f"evt_{job.hex}_0", f"evt_{job.hex}_9999999999", f"{job}:1", ""):
        with pytest.raises(errors.ContractError, match="message_id"):
            await log.get(org, which, wrong)
    with pytest.raises(errors.ContractError, match="use one of pending, delivered, failed"):
        await log.list(org, which, status="lost")  # type: ignore[arg-type]


async def test_a_filter_scans_a_bounded_number_of_deliveries_per_page_and_the_backlog_is_counted(
    webhooks: Webhooks,
    org: uuid.UUID,
    endpoint: Endpoint,
    sql: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, which = webhooks.deliveries, endpoint.endpoint_id
    monkeypatch.setattr(deliveries_module, "_MAX_SCANNED", 3)
    first = write(sql, endpoint, "failed")
    write(sql, endpoint, *["delivered"] * 7)
    last = write(sql, endpoint, "failed", "pending")
    found, pages, after = [], 0, None
    while after or not pages:
        page = await log.list(org, which, status="failed", after=after)
        found, pages, after = [*found, *(one.job_id for one in page.deliveries)], pages + 1, page.after
    assert (found, pages) == ([last, first], 4)
    quiet = (await webhooks.create(org, URL, ["*"], **WHY)).endpoint
    due = (await log.list(org, which, job_id=last)).deliveries[0].due_at
    backlogs = await log.backlogs(org, [endpoint, quiet])
    assert backlogs == {which: (1, due), quiet.endpoint_id: (0, None)}


async def test_a_message_is_resent_at_once_with_all_attempts_and_its_log(
    webhooks: Webhooks, org: uuid.UUID, endpoint: Endpoint, sql: psycopg.Connection
) -> None:
    log, which = webhooks.deliveries, endpoint.endpoint_id
    for status in ("failed", "delivered", "pending"):
        job = write(sql, endpoint, status)
        again = await log.resend(org, which, f"evt_{job.hex}_1", **WHY)
        assert (again.status, again.tries, again.ended_at) == ("pending", 0, None)
        assert state(sql, job) == [("pending", 0, True, False, 1)]
    sql.execute(
        "update duly.webhook_deliveries set held_until = now() + '1 min', tries = 3 where job_id = %s", [job]
    )
    assert (await log.resend(org, which, f"evt_{job.hex}_1", **WHY)).tries == 3, "it is being sent now"
    chain = write(sql, endpoint, "failed", "failed", "delivered", "failed")
    await log.resend(org, which, f"evt_{chain.hex}_1", **WHY)
    await log.resend(org, which, f"evt_{chain.hex}_2", **WHY)
    await log.resend(org, which, f"evt_{chain.hex}_4", **WHY)
    follows = [(status, behind) for status, _, _, behind, _ in state(sql, chain)]
    assert follows == [("pending", False), ("pending", True), ("delivered", False), ("pending", False)]
    with pytest.raises(errors.UnknownDelivery):
        await log.resend(org, which, f"evt_{chain.hex}_5", **WHY)
    await webhooks.disable(org, which, **WHY)
    for attempt in (
        log.resend(org, which, f"evt_{chain.hex}_3", **WHY),
        log.resend_failed(org, which, since=NOON, **WHY),
        log.test(org, which, **WHY),
    ):
        with pytest.raises(errors.Conflict, match="enable it first"):
            await attempt
    resent = [detail["message_id"] for action, detail in audited(sql) if action == "webhook.resent"]
    assert len(resent) == 6


@pytest.mark.parametrize("many", [False, True])
async def test_a_resent_message_does_not_follow_one_that_ends_meanwhile(
    webhooks: Webhooks,
    org: uuid.UUID,
    endpoint: Endpoint,
    fresh: FreshDatabase,
    sql: psycopg.Connection,
    many: bool,
) -> None:
    log, which, job = webhooks.deliveries, endpoint.endpoint_id, write(sql, endpoint, "pending", "failed")
    with psycopg.connect(fresh.direct_url) as sender:
        sender.execute(
            """update duly.webhook_deliveries set status = 'delivered', ended_at = now()
               where job_id = %s and event_seq = 1""",
            [job],
        )
        again = asyncio.create_task(
            log.resend_failed(org, which, since=datetime.now(UTC) - HOUR, **WHY)
            if many
            else log.resend(org, which, f"evt_{job.hex}_2", **WHY)
        )
        await until(sql, f"select exists ({WAITING})")
        sender.commit()
    await again
    assert [(status, follows) for status, _, _, follows, _ in state(sql, job)] == [
        ("delivered", False),
        ("pending", False),
    ]


async def test_failed_deliveries_are_resent_oldest_first_up_to_a_limit(
    webhooks: Webhooks, org: uuid.UUID, endpoint: Endpoint, sql: psycopg.Connection
) -> None:
    log, which, clock = webhooks.deliveries, endpoint.endpoint_id, Clock(sql, NOON - HOUR)
    old = write(sql, endpoint, "failed")
    clock.advance(HOUR)
    chain = write(sql, endpoint, "failed", "failed", "delivered", "failed", "failed")
    clock.advance(HOUR)
    behind = write(sql, endpoint, "pending", "failed")

    done = await log.resend_failed(org, which, since=NOON, limit=3, **WHY)
    assert (done.count, done.more) == (3, True)
    rows = [(status, follows) for status, _, _, follows, _ in state(sql, chain)]
    assert rows == [
        ("pending", False),
        ("pending", True),
        ("delivered", False),
        ("pending", False),
        ("failed", False),
    ]
    done = await log.resend_failed(org, which, since=NOON, limit=3, **WHY)
    assert (done.count, done.more) == (2, False)
    assert state(sql, chain)[4] == ("pending", 0, True, True, 1)
    assert [row[3] for row in state(sql, behind)] == [False, True]
    assert state(sql, old)[0][0] == "failed"
    assert (await log.resend_failed(org, which, since=NOON, **WHY)).count == 0
    counts = [detail["count"] for action, detail in audited(sql) if action == "webhook.resent"]
    assert counts == [3, 2]
    for wrong in ({"limit": 0}, {"limit": 1001}, {"since": NOON.replace(tzinfo=None)}):
        with pytest.raises(errors.ContractError):
            await log.resend_failed(org, which, **{"since": NOON, **wrong}, **WHY)
