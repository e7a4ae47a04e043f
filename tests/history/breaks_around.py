"""How the promises about what surrounds a job are broken: I10 to I19."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta

from duly.testing.history import (
    AuditSight,
    Cancellation,
    Effect,
    FeedRead,
    LeaseSight,
    StreamRead,
    Submission,
)
from tests.history.breaks import breaks
from tests.history.handmade import NOON, ORG, OTHER, SECOND, tale
from tests.history.honest import Honest


@breaks("I10")
def two_answers_for_one_key(told: Honest) -> uuid.UUID | None:
    name = told.done.row["idempotency_key"]
    told.history.submissions.append(Submission("c3", ORG, name, "tale.tell", "ok", told.dead.job_id))
    return None


@breaks("I10")
def two_jobs_have_one_key(told: Honest) -> uuid.UUID | None:
    told.dead.row["idempotency_key"] = told.done.row["idempotency_key"]
    return None


@breaks("I10")
def the_ledger_names_another_job(told: Honest) -> uuid.UUID | None:
    named = {"org_id": ORG, "idempotency_key": told.done.row["idempotency_key"]}
    told.history.ledger.append({**named, "job_id": told.dead.job_id})
    return told.dead.job_id


@breaks("I11")
def a_letter_is_lost(told: Honest) -> uuid.UUID | None:
    told.history.dead_letters.clear()
    return told.dead.job_id


@breaks("I11")
def a_letter_of_the_living(told: Honest) -> uuid.UUID | None:
    told.history.dead_letters.append({"org_id": ORG, "job_id": told.refused.job_id})
    return told.refused.job_id


@breaks("I11")
def two_letters(told: Honest) -> uuid.UUID | None:
    told.history.dead_letters.extend(list(told.history.dead_letters))
    return told.dead.job_id


@breaks("I11")
def dead_without_an_event(told: Honest) -> uuid.UUID | None:
    told.history.events.remove(told.event(told.dead, "deadlettered"))
    return told.dead.job_id


@breaks("I11")
def a_letter_without_its_alert(told: Honest) -> uuid.UUID | None:
    told.history.alerts.clear()
    return told.dead.job_id


@breaks("I11")
def nobody_alerted_although_somebody_looked(told: Honest) -> uuid.UUID | None:
    told.history.alerts.clear()
    told.history.dead_letters[0]["alerted_at"] = None
    object.__setattr__(told.history, "alerting", True)
    return told.dead.job_id


@breaks("I11")
def two_alerts_of_one_letter(told: Honest) -> uuid.UUID | None:
    told.history.alerts.extend(list(told.history.alerts))
    return told.dead.job_id


@breaks("I11")
def an_alert_of_the_living(told: Honest) -> uuid.UUID | None:
    told.history.alerts.append({"org_id": ORG, "job_id": told.refused.job_id})
    return told.refused.job_id


@breaks("I12")
def a_final_result_is_missing(told: Honest) -> uuid.UUID | None:
    told.history.results.pop()
    return told.ticked.job_id


@breaks("I12")
def a_failed_job_has_a_final_result(told: Honest) -> uuid.UUID | None:
    told.dead._result("final")
    return told.dead.job_id


@breaks("I12")
def a_partial_result_is_gone(told: Honest) -> uuid.UUID | None:
    told.history.results[:] = [r for r in told.history.results if r["job_id"] != told.stopped.job_id]
    return told.stopped.job_id


@breaks("I12")
def results_have_a_gap(told: Honest) -> uuid.UUID | None:
    told.ticked.row["result_seq"] = told.history.results[-1]["result_seq"] = 2
    return told.ticked.job_id


@breaks("I13")
def two_jobs_for_a_tick(told: Honest) -> uuid.UUID | None:
    row = told.ticked.row
    twice = tale(told.history, idempotency_key=row["idempotency_key"] + ":2", metadata=row["metadata"])
    return twice.started().failed().job_id


@breaks("I13")
def a_tick_is_recorded_twice(told: Honest) -> uuid.UUID | None:
    told.history.ticks.append(told.history.ticks[0])
    return None


@breaks("I13")
def a_tick_is_forgotten(told: Honest) -> uuid.UUID | None:
    told.history.ticks.pop()
    return None


@breaks("I13")
def a_tick_names_a_job_that_is_not_there(told: Honest) -> uuid.UUID | None:
    told.history.ticks[1]["job_id"] = lost = uuid.uuid4()
    return lost


@breaks("I14")
def a_reader_misses_an_event(told: Honest) -> uuid.UUID | None:
    _read(told, 1, 3, 4)
    return told.done.job_id


@breaks("I14")
def a_reader_sees_one_twice(told: Honest) -> uuid.UUID | None:
    _read(told, 1, 2, 2, 3)
    return told.done.job_id


@breaks("I14")
def a_stream_ends_early(told: Honest) -> uuid.UUID | None:
    _read(told, 1, 2)
    return told.done.job_id


def _read(told: Honest, *numbers: int) -> None:
    types = dict(told.history.streams[0].events)
    seen = tuple((seq, types[seq]) for seq in numbers)
    told.history.streams.append(StreamRead("r3", *told.done.key, seen, to_the_end=True))


@breaks("I15")
def a_phantom_in_a_stream(told: Honest) -> uuid.UUID | None:
    seen = ((1, "job.queued"), (2, "job.canceled"))
    told.history.streams.append(StreamRead("r3", *told.done.key, seen, to_the_end=False))
    return told.done.job_id


@breaks("I15")
def a_feed_skips_an_event(told: Honest) -> uuid.UUID | None:
    _feed(told, told.history.feeds[0].events[:-1])
    return told.ticked.job_id


@breaks("I15")
def a_feed_repeats_an_event(told: Honest) -> uuid.UUID | None:
    seen = told.history.feeds[0].events
    _feed(told, (*seen, seen[0]))
    return told.done.job_id


@breaks("I15")
def a_phantom_in_a_feed(told: Honest) -> uuid.UUID | None:
    _feed(told, (*told.history.feeds[0].events, (told.done.job_id, 99)))
    return told.done.job_id


def _feed(told: Honest, events: tuple[tuple[uuid.UUID, int], ...]) -> None:
    told.history.feeds[0] = FeedRead("f1", ORG, events)


@breaks("I16")
def a_foreign_id_is_told_from_an_unknown_one(told: Honest) -> uuid.UUID | None:
    told.history.probes[0] = replace(told.history.probes[0], foreign="403 not yours")
    return None


@breaks("I16")
def another_org_is_shown(told: Honest) -> uuid.UUID | None:
    told.history.probes[0] = replace(told.history.probes[0], orgs_seen=(ORG, OTHER))
    return None


@breaks("I17")
def an_expired_lease_survives(told: Honest) -> uuid.UUID | None:
    told.history.leases.append(LeaseSight(uuid.uuid4(), 30.0))
    return None


@breaks("I17")
def a_lost_worker_is_found_again(told: Honest) -> uuid.UUID | None:
    told.history.leases.append(LeaseSight(told.history.workers[0]["worker_id"], 0.0, lost=True))
    return None


@breaks("I17")
def a_lost_worker_beats_on(told: Honest) -> uuid.UUID | None:
    told.history.workers[1]["heartbeat_at"] = NOON + timedelta(minutes=5)
    return None


@breaks("I17")
def a_worker_is_lost_within_its_lease(told: Honest) -> uuid.UUID | None:
    told.history.workers[1]["lost_at"] = NOON + 29 * SECOND
    return None


@breaks("I17")
def a_worker_is_lost_although_it_was_not_absent(told: Honest) -> uuid.UUID | None:
    told.history.workers[2]["absent_since"] = None
    return None


@breaks("I17")
def an_absent_worker_is_lost_too_soon(told: Honest) -> uuid.UUID | None:
    told.history.workers[2]["silence"] = 6 * SECOND
    return None


@breaks("I17")
def a_lost_worker_claims(told: Honest) -> uuid.UUID | None:
    started = told.event(told.done, "started")
    told.history.workers[1]["worker_id"] = uuid.UUID(started["actor_id"])
    return told.done.job_id


@breaks("I17")
def a_job_is_held_for_ever(told: Honest) -> uuid.UUID | None:
    return tale(told.history).started().job_id


@breaks("I17")
def a_job_waits_for_ever(told: Honest) -> uuid.UUID | None:
    told.later.row["run_at"] = NOON
    return told.later.job_id


@breaks("I17")
def a_job_waits_nowhere(told: Honest) -> uuid.UUID | None:
    told.history.waiting.clear()
    return told.later.job_id


@breaks("I17")
def an_ended_job_still_waits(told: Honest) -> uuid.UUID | None:
    told.history.waiting.append(told.done.job_id)
    return told.done.job_id


@breaks("I18")
def a_canceled_job_starts(told: Honest) -> uuid.UUID | None:
    told.withdrawn.started()
    return told.withdrawn.job_id


@breaks("I18")
def a_canceled_job_works(told: Honest) -> uuid.UUID | None:
    told.history.effects.append(Effect("outside", *told.withdrawn.key, 1, "k"))
    return told.withdrawn.job_id


@breaks("I18")
def a_job_that_was_to_stop_starts_again(told: Honest) -> uuid.UUID | None:
    again = tale(told.history).asked().started()
    again.tell("cancel_requested")
    return again.back().started().failed().job_id


@breaks("I18")
def a_cancel_was_a_lie(told: Honest) -> uuid.UUID | None:
    told.history.cancellations.append(Cancellation("c1", *told.dead.key, "ok", "canceled"))
    return told.dead.job_id


@breaks("I19")
def an_ended_row_changes(told: Honest) -> uuid.UUID | None:
    told.done.seen(digest="another", observer="o2")
    return told.done.job_id


@breaks("I19")
def an_ended_job_lives_again(told: Honest) -> uuid.UUID | None:
    told.done.seen(status="queued", digest="")
    return told.done.job_id


@breaks("I19")
def an_audit_entry_is_rewritten(told: Honest) -> uuid.UUID | None:
    told.history.audit[0]["digest"] = "another"
    return None


@breaks("I19")
def an_audit_entry_is_gone(told: Honest) -> uuid.UUID | None:
    told.history.audit_sights.append(AuditSight("gone", "e"))
    return None
