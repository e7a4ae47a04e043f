"""Each promise holds for a valid history, finds evidence in it, and reports each violation."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime

import pytest

from duly.features.audit.chain import make_seals
from duly.testing.history import PROMISES, History, check
from duly.testing.history.promises import i19
from tests.history import breaks_around, breaks_within
from tests.history.breaks import BREAKS
from tests.history.handmade import NOON, ORG, recorded_job
from tests.history.honest import Honest

assert breaks_within, breaks_around  # they fill the registry
NAMES = {promise.__name__.upper() for promise in PROMISES}


def test_every_promise_holds_in_a_valid_history_with_evidence() -> None:
    verdict = check(Honest().history)
    assert verdict.holds, verdict.table()
    assert verdict.without_evidence == set()


def test_an_empty_history_is_no_evidence() -> None:
    verdict = check(History())
    assert NAMES == {f"I{number}" for number in range(1, 20)} == verdict.without_evidence
    assert verdict.table().count("no evidence") == 19


@pytest.mark.parametrize("name", BREAKS)
def test_every_violation_is_found_and_names_its_job(name: str) -> None:
    promise, way = BREAKS[name]
    honest = Honest()
    job_id = way(honest)
    found = check(honest.history).of(promise)
    assert found, "nothing was noticed"
    assert job_id is None or job_id in {violation.job_id for violation in found}
    assert all(violation.job_id or violation.evidence for violation in found), "no evidence is given"


def test_every_promise_has_a_violation() -> None:
    assert {promise for promise, _ in BREAKS.values()} == NAMES


def test_the_table_lists_the_violations() -> None:
    honest = Honest()
    honest.history.dead_letters.clear()
    fields = check(honest.history).table()
    assert (
        f"I11: its outcome is dead; it has 0 dead letters and 1 events of them (job {honest.dead.job_id})"
        in fields
    )
    assert "no evidence" not in fields


def test_a_key_may_be_reused_after_it_expired() -> None:
    history = History()
    first = recorded_job(history, policy={"ledger_ttl": 60.0}).submitted().started().completed()
    again = recorded_job(
        history, idempotency_key=first.row["idempotency_key"], created_at=NOON.replace(hour=13)
    )
    again.submitted().started().completed()
    assert check(history).of("I10") == []
    history.jobs[0]["policy"]["ledger_ttl"] = 3601.0
    assert check(history).of("I10") != []


def _entry() -> dict[str, object]:
    fields = dict.fromkeys(("actor_type", "actor_id", "action", "target_type", "target_id"), "x")
    nothing = dict.fromkeys(("reason", "request_id", "correlation_id"))
    return {
        "org_id": ORG, "entry_id": uuid.uuid4(), "occurred_at": NOON, "commit_xid": "7", "detail": {},
        **fields, **nothing,
    }  # fmt: skip


def test_the_audit_chain_is_verified() -> None:
    entries = [_entry()]
    history = History(audit=entries, seals=make_seals(None, entries, datetime.now(UTC)))
    assert (i19(history), i19(history).facts) == ([], 1)
    entries[0]["reason"] = "another"
    assert "audit chain" in i19(history)[0].message


def test_two_hundred_thousand_events_are_checked_in_seconds() -> None:
    history = History()
    for _ in range(20_000):
        job = recorded_job(history).submitted().started().progressed(10).partial(20).back().started()
        job.partial(50).progressed(70).observed().completed().observed()
    assert len(history.events) == 180_000
    began = time.process_time()
    assert check(history).holds
    assert time.process_time() - began < 20, "the machine may be slow, but not that slow"
