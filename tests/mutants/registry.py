"""The mutants: each a small bug, the scenario that reveals it, and the promise that it violates."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from duly.core import decide as decisions
from duly.core.job import JobSpec
from duly.features.schedules import scheduler
from duly.jobs import store as job_store
from duly.worker import settle_store as work
from duly.worker.context.transaction import BoundSession
from tests.mutants import scenarios
from tests.mutants.patches import Patch, edited, in_code, in_database, together
from tests.mutants.scenarios import Scenario
from tests.mutants.stage import Stage


@dataclass(frozen=True, slots=True)
class Mutant:
    """A seeded bug."""

    name: str
    breaks: str
    """The promise that must be reported."""
    scenario: Scenario
    patch: Patch


_HELD = "and s.status in ('running', 'partial')"
_CANCELED = "t.status = 'queued' and s.cancel_requested_at is not null"

_fence_dropped = edited(
    jobs__settle=[("and s.attempt = t.attempt\n      and", "and")],
    jobs__complete=[("and s.attempt = t.attempt and s.status", "and s.status")],
)
_chunk_unfenced = edited(
    jobs__store_chunk=[
        (f"and s.attempt = %(attempt)s\n      {_HELD}", ""),
        # A waiting job has no worker, and an event without an actor is refused by the table.
        ("h.worker_id::text", "coalesce(h.worker_id::text, 'none')"),
    ]
)
_COUNTED_IN_CLAIM = [
    ("'running', 'pending', 1, 2,", "'running', 'pending', 0, 2,"),
    ("attempt = s.attempt + 1", "attempt = s.attempt"),
]
_counted_at_failure = edited(
    jobs__claim=_COUNTED_IN_CLAIM,
    jobs__claim_open=_COUNTED_IN_CLAIM,
    jobs__settle=[
        (
            "update duly.job_states s set",
            "update duly.job_states s set"
            " attempt = s.attempt + (coalesce(t.error_code, 'lease_lost') <> 'lease_lost')::integer,",
        )
    ],
)
_feed_by_id = edited(feed__scan=[("pg_snapshot_xmin(s) as settled", "pg_snapshot_xmax(s) as settled")])
_ended_rows_rewritten = edited(
    jobs__settle=[(f"and s.attempt = t.attempt\n      {_HELD}", "and s.attempt = t.attempt")]
)
_progress_lowered = edited(
    jobs__update_progress=[
        ("greatest(s.progress_percent, least(t.progress_percent, 100))", "t.progress_percent")
    ]
)
_partials_deleted = together(
    in_database("grant delete on duly.result_snapshots to duly_engine"),
    edited(
        jobs__settle=[
            (
                "), final as (",
                "), tidied as (delete from duly.result_snapshots r using settled s"
                " where r.org_id = s.org_id and r.job_id = s.job_id and s.status = 'failed'), final as (",
            )
        ]
    ),
)
_cancel_ignored = edited(
    jobs__settle=[
        (_CANCELED, "false"),
        (
            "when t.status <> 'queued' or s.cancel_requested_at is not null then",
            "when t.status <> 'queued' then",
        ),
    ]
)
_LOST_WORKERS_CLAIM = [("and coalesce(w.lost_at, w.stopped_at) is not null", "and false")]
_zombie_beats = edited(
    workers__beat=[(" and lost_at is null", "")],
    jobs__claim=_LOST_WORKERS_CLAIM,
    jobs__claim_open=_LOST_WORKERS_CLAIM,
    jobs__claim_named=_LOST_WORKERS_CLAIM,
)
_lost_too_soon = edited(workers__declare_lost=[("then w.lease else", "then w.lease / 2 else")])
_key_forgotten = in_database(
    """create function duly.forget() returns trigger language plpgsql as $$
       begin new.expires_at := new.first_seen_at; return new; end $$""",
    "grant execute on function duly.forget to public",
    "create trigger forgets before insert or update on duly.key_ledger"
    " for each row execute function duly.forget()",
)
_key_freed_early = in_database(
    """create function duly.free_key() returns trigger language plpgsql security definer as $$
       begin
           delete from duly.key_ledger l where l.org_id = new.org_id and l.job_id = new.job_id;
           return null;
       end $$""",
    "create trigger frees after update on duly.job_states"
    " for each row when (new.finished_at is not null) execute function duly.free_key()",
)
_queued_untold = in_database(
    """create function duly.skip_batch() returns trigger language plpgsql as $$
       begin return case when new.event_type = 'job.queued' then null else new end; end $$""",
    "grant execute on function duly.skip_batch to public",
    "create trigger skips before insert on duly.event_batches"
    " for each row execute function duly.skip_batch()",
)
_letter_lost = edited(
    jobs__settle=[("from settled s where s.outcome = 'dead'", "from settled s where false")]
)
_event_gap = edited(jobs__store_chunk=[("event_seq = s.event_seq + 1", "event_seq = s.event_seq + 2")])
_end_untold = edited(
    jobs__complete=[("from done d\n), final", "from done d where false\n), final")],
    jobs__settle=[
        (
            "unnest(l.events) with ordinality as e(event_type, n)",
            "unnest(l.events) with ordinality as e(event_type, n) where e.event_type <> 'job.completed'",
        )
    ],
)
_starts_early = edited(
    jobs__settle=[
        ("where s.status = 'queued' and s.run_at <= duly.now()", "where s.status = 'queued'"),
        ("where s.status = 'queued' and s.run_at > duly.now()", "where false"),
    ]
)
_reader_skips = edited(
    events__read_after=[
        ("event_seq > %(after_seq)s", "event_seq > %(after_seq)s + sign(%(after_seq)s::integer)")
    ]
)
_open_table = in_database("alter policy tenant_isolation on duly.job_records using (true)")
_paid_twice = edited(
    failure_callbacks__claim=[
        ("delete from duly.bridge_debts d using", "update duly.bridge_debts d set tries = tries from")
    ]
)
_PLAIN = "c.claim_id is not null and t.job_id <> all (c.left_jobs) as plain"
_left_unchecked = edited(jobs__complete_plain=[(_PLAIN, "c.claim_id is not null as plain")])
_claim_unlocked = edited(jobs__complete_plain=[("order by c.claim_id for update", "order by c.claim_id")])
_claim_unchecked = edited(
    jobs__complete_plain=[
        (_PLAIN, "coalesce(t.job_id <> all (c.left_jobs), true) as plain"),
        (
            "t.worker_id, t.claimed_at, (select duly.now()), t.commit_xid,",
            "coalesce(t.worker_id, t.job_id), coalesce(t.claimed_at, duly.now()), (select duly.now()),"
            " coalesce(t.commit_xid, '1'),",
        ),
    ]
)
_batch_forgotten = edited(
    jobs__complete_plain=[("from ended e group by e.org_id", "from ended e where false group by e.org_id")]
)
_number_derived_twice = in_database(
    """do $$ begin execute replace(pg_get_functiondef('duly.events_of'::regproc),
       $x$e.job_id, 3, 'job.completed'$x$, $x$e.job_id, 2, 'job.completed'$x$); end $$"""
)


def _one_more(again: Callable[..., Any]) -> Callable[..., Any]:
    def mutated(hold: Any, trigger: Any, error: Any, policy: Any, run_at: Any) -> Any:
        more = policy.model_copy(update={"max_attempts": policy.max_attempts + 1})
        return again(hold, trigger, error, more, run_at)

    return mutated


def _unwritten(enqueue: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def mutated(database: Any, org_id: Any, specs: Any, **how: Any) -> Any:
        if len(specs) == 1:
            return await enqueue(database, org_id, specs, **how)
        return [*await enqueue(database, org_id, specs[:-1], **how), None]

    return mutated


def _unlike_any_other(spec: Callable[..., JobSpec]) -> Callable[..., JobSpec]:
    def mutated(*args: Any) -> JobSpec:
        made = spec(*args)
        return made._replace(idempotency_key=f"{made.idempotency_key}:{uuid.uuid4()}")

    return mutated


@contextmanager
def _settles_first(stage: Stage) -> Iterator[None]:
    async def complete(self: BoundSession, job: Any, to: Any, worker_id: Any) -> bool:
        async with (await stage.app.resources()).database.engine() as conn:
            ours = await work.settle(conn, [(job, to)], actor_type="worker", actor_id=str(worker_id))
        self._conn = None
        async with self._stack:
            return bool(ours)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BoundSession, "complete", complete)
        yield


_acknowledged_unwritten = in_code(job_store, "enqueue_and_commit", _unwritten)
_beyond_the_maximum = in_code(decisions, "_retry_or_dead_letter", _one_more)
_tick_not_unique = together(
    in_database("alter table duly.schedule_ticks drop constraint schedule_ticks_pkey"),
    edited(schedules__take_due=[("for update of s skip locked", "")]),
    in_code(scheduler, "_tick_job_spec", _unlike_any_other),
)

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a bulk acknowledges a job that it did not write", "I1", scenarios.mixture, _acknowledged_unwritten
    ),
    Mutant("a completion leaves no event", "I2", scenarios.mixture, _end_untold),
    Mutant("a chunk skips a number", "I3", scenarios.mixture, _event_gap),
    Mutant("a chunk is stored without checking attempt and status", "I4", scenarios.zombies, _chunk_unfenced),
    Mutant("progress is stored as it comes", "I5", scenarios.mixture, _progress_lowered),
    Mutant("the fence is dropped in settle", "I6", scenarios.zombies, _fence_dropped),
    Mutant(
        "the job is finished before its transaction commits", "I7", scenarios.broken_commit, _settles_first
    ),
    Mutant("a failure callback is paid twice", "I7", scenarios.failure_callbacks, _paid_twice),
    Mutant(
        "an attempt is counted when it fails, not when it is claimed",
        "I8",
        scenarios.crashes,
        _counted_at_failure,
    ),
    Mutant("one more retry than the maximum", "I8", scenarios.mixture, _beyond_the_maximum),
    Mutant("what goes back to the queue may run at once", "I9", scenarios.mixture, _starts_early),
    Mutant("the ledger forgets a key at once", "I10", scenarios.mixture, _key_forgotten),
    Mutant("an ended job frees its explicit key", "I10", scenarios.mixture, _key_freed_early),
    Mutant("a new job is in no batch", "I15", scenarios.mixture, _queued_untold),
    Mutant("a dead letter is lost", "I11", scenarios.mixture, _letter_lost),
    Mutant("partial results are deleted on failure", "I12", scenarios.mixture, _partials_deleted),
    Mutant("a tick is neither locked nor unique", "I13", scenarios.two_schedulers, _tick_not_unique),
    Mutant("a reader who comes back skips an event", "I14", scenarios.mixture, _reader_skips),
    Mutant("the feed trusts the order of ids", "I15", scenarios.overtaken, _feed_by_id),
    Mutant("one table is open to every org", "I16", scenarios.strangers, _open_table),
    Mutant("a lost worker beats and claims on", "I17", scenarios.lost_worker, _zombie_beats),
    Mutant("a worker is lost before its lease is over", "I17", scenarios.late_heartbeat, _lost_too_soon),
    Mutant("a retry forgets a cancel request", "I18", scenarios.withdrawn, _cancel_ignored),
    Mutant("a completion ignores that its job left", "I3", scenarios.plain_path, _left_unchecked),
    Mutant("a completion does not lock its claim", "I3", scenarios.plain_path, _claim_unlocked),
    Mutant("an end is written without its claim", "I2", scenarios.plain_path, _claim_unchecked),
    Mutant("the ends of a claim are in no batch", "I15", scenarios.plain_path, _batch_forgotten),
    Mutant("an event has the number of another one", "I3", scenarios.plain_path, _number_derived_twice),
    Mutant("an ended row is settled again", "I19", scenarios.second_thoughts, _ended_rows_rewritten),
)
