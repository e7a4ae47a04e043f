"""Verification of an audit trail: tampering with the database is found and located."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime

import psycopg
import pytest

from duly import Duly, errors
from duly.features.audit import store, verification
from duly.features.audit.chain import GENESIS, make_seals
from duly.features.audit.entries import ChangeRequest, record_entry
from duly.features.audit.models import AuditReport
from tests.features.audit.trail import ANNA, Trail, trail
from tests.maintenance.aging import LONG_AGO, drop, ended, make_partitions
from tests.worker.working import WAIT_TIMEOUT, working

__all__ = ["trail"]


def problems(report: AuditReport) -> list[tuple[str, int | None, uuid.UUID | None]]:
    return [(problem.kind, problem.seal_seq, problem.entry_id) for problem in report.problems]


async def test_an_untouched_trail_is_valid(trail: Trail) -> None:
    report = await trail.verify()
    assert (report.ok, report.seals, report.sealed, report.unsealed, report.gone) == (True, 3, 8, 0, 0)
    assert (report.broken_at, report.problems) == (None, ())
    await trail.write(9)
    assert (await trail.verify()).unsealed == 1


async def test_an_org_without_entries_has_an_empty_chain_and_an_unknown_one_has_none(
    app: Duly, org: uuid.UUID
) -> None:
    report = await app.audit.verify(str(org))
    assert (report.ok, report.seals, report.head) == (True, 0, GENESIS.hex())
    for call in (app.audit.verify, app.audit.list):
        with pytest.raises(errors.UnknownOrg):
            await call(uuid.uuid4())
    with pytest.raises(errors.UnknownOrg):
        await anext(app.audit.export(uuid.uuid4()))


CHANGES = {
    "detail": "jsonb_build_object('amount', 7)",
    "reason": "'no reason'",
    "actor_id": "'eve'",
    "action": "'queue.deleted'",
    "occurred_at": "occurred_at - interval '1 microsecond'",
}


@pytest.mark.parametrize("column", CHANGES)
async def test_a_changed_entry_is_reported(trail: Trail, column: str) -> None:
    trail.sql.execute(f"update duly.audit_entries set {column} = {CHANGES[column]} where target_id = '5'")
    report = await trail.verify()
    assert (report.ok, report.broken_at) == (False, 2)
    assert problems(report) == [("entry_changed", 2, trail.entry(5))]


async def test_a_deleted_entry_is_reported(trail: Trail) -> None:
    for n, seal in ((1, 1), (6, 2), (8, 3)):
        gone = trail.entry(n)
        row = trail.sql.execute(
            "select to_jsonb(e) from duly.audit_entries e where target_id = %s", [str(n)]
        ).fetchone()
        assert row
        trail.sql.execute("delete from duly.audit_entries where target_id = %s", [str(n)])
        report = await trail.verify()
        assert (report.broken_at, problems(report)) == (seal, [("entry_missing", seal, gone)])
        back = "select * from jsonb_populate_record(null::duly.audit_entries, %s)"
        trail.sql.execute(f"insert into duly.audit_entries {back}", [json.dumps(row[0])])
        assert (await trail.verify()).ok


async def test_an_inserted_entry_is_reported(trail: Trail) -> None:
    trail.sql.execute(
        """
        insert into duly.audit_entries
        select (jsonb_populate_record(e, jsonb_build_object(
            'entry_id', gen_random_uuid(), 'target_id', '99',
            'occurred_at', e.occurred_at - interval '1 microsecond'))).*
        from duly.audit_entries e where target_id = '4'
        """
    )
    report = await trail.verify()
    assert problems(report) == [("entry_added", 2, trail.entry(99))]


async def test_a_backdated_entry_is_valid_like_any_new_entry(
    trail: Trail,
) -> None:
    """Its time is its writer's word. The chain proves since when it was there, and that it stays."""
    await trail.write(9, at="2026-01-01T00:00:00Z")
    await trail.seal()
    assert (await trail.verify()).ok


async def test_a_deleted_seal_is_reported_at_any_position(trail: Trail) -> None:
    for seq in (2, 1):
        trail.sql.execute("delete from duly.audit_seals where seal_seq = %s", [seq])
        report = await trail.verify()
        assert (report.broken_at, report.problems[0].kind) == (seq, "seal_missing")
    trail.sql.execute("delete from duly.audit_seals")
    report = await trail.verify()
    assert problems(report) == [("seal_missing", 1, None)]
    assert report.problems[0].message.startswith("8 entries after the last seal were sealed")


async def test_a_deleted_last_seal_is_detected_by_its_entries(trail: Trail) -> None:
    trail.sql.execute("delete from duly.audit_seals where seal_seq = 3")
    report = await trail.verify()
    assert (report.ok, report.unsealed, problems(report)) == (False, 2, [("seal_missing", 3, None)])
    # Nor does the next seal cover it up.
    await trail.write(9)
    await trail.seal()
    assert not (await trail.verify()).ok


async def test_a_truncated_chain_is_detected_by_an_expected_head(
    trail: Trail,
) -> None:
    """Nothing inside the database can tell; that is what `head` is for."""
    head = (await trail.verify()).head
    await trail.write(9)
    await trail.seal()
    assert (await trail.verify(expect=head)).ok, "the chain has grown, and still contains it"
    trail.sql.execute("delete from duly.audit_seals where seal_seq >= 3")
    trail.sql.execute("delete from duly.audit_entries where target_id in ('7', '8', '9')")
    assert (await trail.verify()).ok
    report = await trail.verify(expect=head)
    assert (report.ok, problems(report)) == (False, [("head_unknown", None, None)])


async def test_a_recomputed_chain_is_detected_only_by_an_expected_head(
    trail: Trail,
) -> None:
    head = (await trail.verify()).head
    trail.sql.execute("update duly.audit_entries set actor_id = 'eve' where target_id = '5'")
    trail.sql.execute("delete from duly.audit_seals")
    trail.sql.execute("update duly.audit_mark set commit_xid = '0'")
    await trail.seal()
    assert (await trail.verify()).ok
    assert not (await trail.verify(expect=head)).ok


async def test_a_changed_seal_and_a_recomputed_seal_are_distinguished(trail: Trail) -> None:
    trail.sql.execute("update duly.audit_seals set sealed_at = sealed_at + interval '1 s' where seal_seq = 2")
    assert problems(await trail.verify()) == [("seal_changed", 2, None)]
    rows = [row async for row in trail.app.audit.export(trail.org)]
    seals = [row for row in rows if row["kind"] == "seal"]
    entries = [row for row in rows if row["kind"] == "entry"][3:6]
    [anew] = make_seals(seals[0], entries, seals[1]["sealed_at"])
    trail.sql.execute("update duly.audit_seals set hash = %s where seal_seq = 2", [anew["hash"]])
    assert problems(await trail.verify()) == [("seal_unlinked", 3, None)]


async def test_a_chain_is_verified_in_segments(trail: Trail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_SEALS_PER_READ", 1)
    assert (await trail.verify()).sealed == 8
    trail.sql.execute("delete from duly.audit_entries where target_id in ('3', '4')")
    assert [(kind, seal) for kind, seal, _ in problems(await trail.verify())] == [
        ("entry_missing", 1),
        ("entry_missing", 2),
    ]


async def test_a_report_has_at_most_a_hundred_problems(trail: Trail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "MAX_PROBLEMS", 5)
    trail.sql.execute("update duly.audit_entries set actor_id = 'eve'")
    report = await trail.verify()
    assert (len(report.problems), report.broken_at, report.sealed) == (5, 1, 8)


async def test_a_job_verifies_a_long_chain_and_its_report_is_the_same(trail: Trail) -> None:
    started = await trail.app.audit.start_verification(trail.org, actor=ANNA)
    again = await trail.app.audit.start_verification(trail.org, actor=ANNA)
    assert (again.job_id, again.created) == (started.job_id, False), "one is under way"
    waiting = await trail.app.audit.verification(trail.org, started.job_id)
    assert (waiting.job.status, waiting.report) == ("queued", None)
    async with working(trail.app):
        await started.wait(WAIT_TIMEOUT)
    done = await trail.app.audit.verification(trail.org, str(started.job_id))
    assert done.report == await trail.verify()
    assert (await trail.app.audit.start_verification(trail.org, actor=ANNA)).created, (
        "the trail may have changed since"
    )
    events = [event.event_type async for event in started.events()]
    assert events.count("job.started") == 1
    with pytest.raises(errors.UnknownJob):
        await trail.app.audit.verification(trail.org, uuid.uuid4())


async def test_a_verification_reports_its_progress(trail: Trail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_SEALS_PER_READ", 1)
    steps: list[float] = []
    await trail.verify(step=steps.append)
    assert steps == pytest.approx([1 / 3, 2 / 3, 1])


@pytest.mark.parametrize("expect", ["", "abc", "zz" * 32, "00" * 31])
async def test_an_expected_head_that_is_not_a_hash_is_refused(trail: Trail, expect: str) -> None:
    with pytest.raises(errors.ContractError) as caught:
        await trail.verify(expect=expect)
    assert caught.value.field == "expect"


# --- retention


@pytest.fixture
async def aged(app: Duly, org: uuid.UUID, sql: psycopg.Connection) -> Trail:
    """Three entries of January 2024, two of March, one of today."""
    make_partitions(sql)
    trail = Trail(app, org, sql)
    await trail.write(1, 2, 3, at=LONG_AGO)
    await trail.write(4, 5, at="2024-03-20T00:00:00Z")
    await trail.write(6)
    await trail.seal()
    return trail


def forget(trail: Trail, now: str) -> None:
    while drop(trail.sql, "audit_entries", "30 days", now):
        pass


async def test_entries_dropped_by_retention_are_counted_and_the_rest_is_still_verified(aged: Trail) -> None:
    assert (await aged.verify()).sealed == 6
    forget(aged, "2024-04-05T00:00:00Z")
    report = await aged.verify()
    assert (report.ok, report.sealed, report.gone, report.unsealed) == (True, 6, 3, 0)
    assert report.kept_since == datetime(2024, 3, 1, tzinfo=UTC)
    aged.sql.execute("update duly.audit_entries set reason = 'x' where target_id = '4'")
    assert problems(await aged.verify()) == [("entry_changed", 2, aged.entry(4))]
    aged.sql.execute("delete from duly.audit_entries where target_id = '4'")
    assert [kind for kind, *_ in problems(await aged.verify())] == ["entry_missing"]


async def test_seals_of_dropped_entries_still_link_the_chain(aged: Trail) -> None:
    forget(aged, "2024-06-05T00:00:00Z")
    assert (await aged.verify()).gone == 5
    aged.sql.execute("delete from duly.audit_seals where seal_seq = 1")
    assert problems(await aged.verify()) == [("seal_missing", 1, None)]


async def test_deleting_by_hand_is_not_taken_for_retention(aged: Trail) -> None:
    aged.sql.execute("delete from duly.audit_entries where occurred_at < '2024-02-01'")
    assert [kind for kind, *_ in problems(await aged.verify())] == ["entry_missing"] * 3


async def test_a_job_and_its_audit_entries_outlive_its_events(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    """The job itself is the compact summary; what people did to it is in the audit trail."""
    make_partitions(sql)
    dead, canceled = ended(sql, org, how="dead"), ended(sql, org, how="canceled")
    async with (await app.resources()).database.engine() as conn:
        request = ChangeRequest(ANNA, "enough")
        await record_entry(conn, request, org, "job.cancel_requested", str(canceled))
    while drop(sql, "event_log"):
        pass
    detail = await app.jobs.show(org, dead)
    job = detail.job
    assert (detail.events, job.job_type, job.actor_id, job.request_id) == ((), "t", "u1", "r")
    assert (job.outcome, job.error_code, job.error_message) == ("dead", "boom", "it broke")
    assert f"{job.finished_at:%Y-%m-%d}" == LONG_AGO[:10]
    assert any("boom" in line for line in detail.explanation), detail.explanation
    job = (await app.jobs.show(org, canceled)).job
    assert (job.outcome, job.canceled_by, job.cancel_reason) == ("canceled", "user", "enough")
    [entry] = (await app.audit.list(org, target_id=str(canceled))).entries
    assert (entry.actor_id, entry.action, entry.reason) == ("anna", "job.cancel_requested", "enough")


# --- isolation between orgs


async def test_the_trails_of_orgs_are_separate(trail: Trail, app: Duly) -> None:
    other = Trail(app, uuid.uuid4(), trail.sql)
    await app.create_org(other.org, "Other")
    await other.write(1)
    await other.seal()
    assert [entry.action for entry in (await app.audit.list(other.org)).entries] == [
        "queue.paused",
        "org.created",
    ]
    assert {row["org_id"] async for row in app.audit.export(other.org)} == {other.org}
    trail.sql.execute("update duly.audit_entries set reason = 'x' where org_id = %s", [other.org])
    reports = {report.org_id: report.ok async for report in app.audit.verify_all()}
    assert (reports[trail.org], reports[other.org]) == (True, False)


async def test_an_org_whose_row_is_gone_is_still_verified(trail: Trail) -> None:
    trail.sql.execute("delete from duly.organizations where org_id = %s", [trail.org])
    trail.sql.execute("delete from duly.audit_entries where target_id = '2'")
    reports = {report.org_id: report.ok async for report in trail.app.audit.verify_all()}
    assert reports[trail.org] is False
