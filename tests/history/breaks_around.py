"""Broken promises about what surrounds a job: I10 to I19."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta

from duly.testing.history import (
    AuditObservation,
    Cancellation,
    Effect,
    FeedRead,
    LeaseObservation,
    RecordedSubmission,
    StreamRead,
)
from tests.history.breaks import breaks
from tests.history.handmade import NOON, ORG, OTHER, SECOND, recorded_job
from tests.history.honest import Honest


@breaks("I10")
def two_answers_for_one_key(honest: Honest) -> uuid.UUID | None:
    name = honest.done.row["idempotency_key"]
    honest.history.submissions.append(
        RecordedSubmission("c3", ORG, name, "tale.tell", "ok", honest.dead.job_id)
    )
    return None


@breaks("I10")
def two_jobs_have_one_key(honest: Honest) -> uuid.UUID | None:
    honest.dead.row["idempotency_key"] = honest.done.row["idempotency_key"]
    return None


@breaks("I10")
def the_ledger_names_another_job(honest: Honest) -> uuid.UUID | None:
    named = {"org_id": ORG, "idempotency_key": honest.done.row["idempotency_key"]}
    honest.history.ledger.append({**named, "job_id": honest.dead.job_id})
    return honest.dead.job_id


@breaks("I11")
def a_letter_is_lost(honest: Honest) -> uuid.UUID | None:
    honest.history.dead_letters.clear()
    return honest.dead.job_id


@breaks("I11")
def a_letter_of_the_living(honest: Honest) -> uuid.UUID | None:
    honest.history.dead_letters.append({"org_id": ORG, "job_id": honest.refused.job_id})
    return honest.refused.job_id


@breaks("I11")
def two_letters(honest: Honest) -> uuid.UUID | None:
    honest.history.dead_letters.extend(list(honest.history.dead_letters))
    return honest.dead.job_id


@breaks("I11")
def dead_without_an_event(honest: Honest) -> uuid.UUID | None:
    honest.history.events.remove(honest.event(honest.dead, "deadlettered"))
    return honest.dead.job_id


@breaks("I11")
def a_letter_without_its_alert(honest: Honest) -> uuid.UUID | None:
    honest.history.alerts.clear()
    return honest.dead.job_id


@breaks("I11")
def nobody_alerted_although_somebody_looked(honest: Honest) -> uuid.UUID | None:
    honest.history.alerts.clear()
    honest.history.dead_letters[0]["alerted_at"] = None
    object.__setattr__(honest.history, "alerting", True)
    return honest.dead.job_id


@breaks("I11")
def two_alerts_of_one_letter(honest: Honest) -> uuid.UUID | None:
    honest.history.alerts.extend(list(honest.history.alerts))
    return honest.dead.job_id


@breaks("I11")
def an_alert_of_the_living(honest: Honest) -> uuid.UUID | None:
    honest.history.alerts.append({"org_id": ORG, "job_id": honest.refused.job_id})
    return honest.refused.job_id


@breaks("I12")
def a_final_result_is_missing(honest: Honest) -> uuid.UUID | None:
    honest.history.results.pop()
    return honest.ticked.job_id


@breaks("I12")
def a_failed_job_has_a_final_result(honest: Honest) -> uuid.UUID | None:
    honest.dead._result("final")
    return honest.dead.job_id


@breaks("I12")
def a_partial_result_is_gone(honest: Honest) -> uuid.UUID | None:
    honest.history.results[:] = [r for r in honest.history.results if r["job_id"] != honest.stopped.job_id]
    return honest.stopped.job_id


@breaks("I12")
def results_have_a_gap(honest: Honest) -> uuid.UUID | None:
    honest.ticked.row["result_seq"] = honest.history.results[-1]["result_seq"] = 2
    return honest.ticked.job_id


@breaks("I13")
def two_jobs_for_a_tick(honest: Honest) -> uuid.UUID | None:
    row = honest.ticked.row
    twice = recorded_job(
        honest.history, idempotency_key=row["idempotency_key"] + ":2", metadata=row["metadata"]
    )
    return twice.started().failed().job_id


@breaks("I13")
def a_tick_is_recorded_twice(honest: Honest) -> uuid.UUID | None:
    honest.history.ticks.append(honest.history.ticks[0])
    return None


@breaks("I13")
def a_tick_is_forgotten(honest: Honest) -> uuid.UUID | None:
    honest.history.ticks.pop()
    return None


@breaks("I13")
def a_tick_names_a_job_that_is_not_there(honest: Honest) -> uuid.UUID | None:
    honest.history.ticks[1]["job_id"] = lost = uuid.uuid4()
    return lost


@breaks("I14")
def a_reader_misses_an_event(honest: Honest) -> uuid.UUID | None:
    _read(honest, 1, 3, 4)
    return honest.done.job_id


@breaks("I14")
def a_reader_sees_one_twice(honest: Honest) -> uuid.UUID | None:
    _read(honest, 1, 2, 2, 3)
    return honest.done.job_id


@breaks("I14")
def a_stream_ends_early(honest: Honest) -> uuid.UUID | None:
    _read(honest, 1, 2)
    return honest.done.job_id


def _read(honest: Honest, *numbers: int) -> None:
    types = dict(honest.history.streams[0].events)
    events = tuple((seq, types[seq]) for seq in numbers)
    honest.history.streams.append(StreamRead("r3", *honest.done.key, events, to_the_end=True))


@breaks("I15")
def a_phantom_in_a_stream(honest: Honest) -> uuid.UUID | None:
    events = ((1, "job.queued"), (2, "job.canceled"))
    honest.history.streams.append(StreamRead("r3", *honest.done.key, events, to_the_end=False))
    return honest.done.job_id


@breaks("I15")
def a_feed_skips_an_event(honest: Honest) -> uuid.UUID | None:
    _feed(honest, honest.history.feeds[0].events[:-1])
    return honest.ticked.job_id


@breaks("I15")
def a_feed_repeats_an_event(honest: Honest) -> uuid.UUID | None:
    events = honest.history.feeds[0].events
    _feed(honest, (*events, events[0]))
    return honest.done.job_id


@breaks("I15")
def a_phantom_in_a_feed(honest: Honest) -> uuid.UUID | None:
    _feed(honest, (*honest.history.feeds[0].events, (honest.done.job_id, 99)))
    return honest.done.job_id


def _feed(honest: Honest, events: tuple[tuple[uuid.UUID, int], ...]) -> None:
    honest.history.feeds[0] = FeedRead("f1", ORG, events)


@breaks("I16")
def a_foreign_id_is_told_from_an_unknown_one(honest: Honest) -> uuid.UUID | None:
    honest.history.probes[0] = replace(honest.history.probes[0], foreign="403 not yours")
    return None


@breaks("I16")
def another_org_is_shown(honest: Honest) -> uuid.UUID | None:
    honest.history.probes[0] = replace(honest.history.probes[0], orgs_named=(ORG, OTHER))
    return None


@breaks("I17")
def an_expired_lease_survives(honest: Honest) -> uuid.UUID | None:
    honest.history.leases.append(LeaseObservation(uuid.uuid4(), 30.0))
    return None


@breaks("I17")
def a_lost_worker_is_found_again(honest: Honest) -> uuid.UUID | None:
    honest.history.leases.append(LeaseObservation(honest.history.workers[0]["worker_id"], 0.0, lost=True))
    return None


@breaks("I17")
def a_lost_worker_beats_on(honest: Honest) -> uuid.UUID | None:
    honest.history.workers[1]["heartbeat_at"] = NOON + timedelta(minutes=5)
    return None


@breaks("I17")
def a_worker_is_lost_within_its_lease(honest: Honest) -> uuid.UUID | None:
    honest.history.workers[1]["lost_at"] = NOON + 29 * SECOND
    return None


@breaks("I17")
def a_worker_is_lost_although_it_was_not_absent(honest: Honest) -> uuid.UUID | None:
    honest.history.workers[2]["absent_since"] = None
    return None


@breaks("I17")
def an_absent_worker_is_lost_too_soon(honest: Honest) -> uuid.UUID | None:
    honest.history.workers[2]["silence"] = 6 * SECOND
    return None


@breaks("I17")
def a_lost_worker_claims(honest: Honest) -> uuid.UUID | None:
    started = honest.event(honest.done, "started")
    honest.history.workers[1]["worker_id"] = uuid.UUID(started["actor_id"])
    return honest.done.job_id


@breaks("I17")
def a_job_is_held_for_ever(honest: Honest) -> uuid.UUID | None:
    return recorded_job(honest.history).started().job_id


@breaks("I17")
def a_job_waits_for_ever(honest: Honest) -> uuid.UUID | None:
    honest.later.row["run_at"] = NOON
    return honest.later.job_id


@breaks("I17")
def a_job_waits_nowhere(honest: Honest) -> uuid.UUID | None:
    honest.history.queued.clear()
    return honest.later.job_id


@breaks("I17")
def an_ended_job_still_waits(honest: Honest) -> uuid.UUID | None:
    honest.history.queued.append(honest.done.job_id)
    return honest.done.job_id


@breaks("I18")
def a_canceled_job_starts(honest: Honest) -> uuid.UUID | None:
    honest.withdrawn.started()
    return honest.withdrawn.job_id


@breaks("I18")
def a_canceled_job_works(honest: Honest) -> uuid.UUID | None:
    honest.history.effects.append(Effect("outside", *honest.withdrawn.key, 1, "k"))
    return honest.withdrawn.job_id


@breaks("I18")
def a_job_that_was_to_stop_starts_again(honest: Honest) -> uuid.UUID | None:
    again = recorded_job(honest.history).submitted().started()
    again.add("cancel_requested")
    return again.back().started().failed().job_id


@breaks("I18")
def a_cancel_was_a_lie(honest: Honest) -> uuid.UUID | None:
    honest.history.cancellations.append(Cancellation("c1", *honest.dead.key, "ok", "canceled"))
    return honest.dead.job_id


@breaks("I19")
def an_ended_row_changes(honest: Honest) -> uuid.UUID | None:
    honest.done.observed(digest="another", observer="o2")
    return honest.done.job_id


@breaks("I19")
def an_ended_job_lives_again(honest: Honest) -> uuid.UUID | None:
    honest.done.observed(status="queued", digest="")
    return honest.done.job_id


@breaks("I19")
def an_audit_entry_is_rewritten(honest: Honest) -> uuid.UUID | None:
    honest.history.audit[0]["digest"] = "another"
    return None


@breaks("I19")
def an_audit_entry_is_gone(honest: Honest) -> uuid.UUID | None:
    honest.history.audit_observations.append(AuditObservation("gone", "e"))
    return None
