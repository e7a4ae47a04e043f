"""Broken promises about a job itself: I1 to I9."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta

from duly.testing.history import (
    Effect,
    RecordedSubmission,
)
from tests.history.breaks import breaks
from tests.history.handmade import NOON, ORG, OTHER, recorded_job
from tests.history.honest import Honest


@breaks("I1")
def an_acknowledged_job_is_missing(honest: Honest) -> uuid.UUID | None:
    lost = uuid.uuid4()
    honest.history.submissions.append(RecordedSubmission("c1", ORG, "lost", "tale.tell", "ok", lost))
    return lost


@breaks("I1")
def an_acknowledged_job_is_another_orgs(honest: Honest) -> uuid.UUID | None:
    honest.history.submissions.append(
        RecordedSubmission("c1", OTHER, "lost", "tale.tell", "ok", honest.done.job_id)
    )
    return honest.done.job_id


@breaks("I1")
def a_job_that_nobody_asked_for(honest: Honest) -> uuid.UUID | None:
    return recorded_job(honest.history).started().failed().job_id


@breaks("I1")
def a_refused_job_runs_all_the_same(honest: Honest) -> uuid.UUID | None:
    return recorded_job(honest.history).submitted("fail").started().failed().job_id


@breaks("I1")
def a_lost_answer_means_two_jobs(honest: Honest) -> uuid.UUID | None:
    twice = recorded_job(honest.history, idempotency_key=honest.refused.row["idempotency_key"])
    twice.row["created_at"] += timedelta(seconds=1)
    return twice.started().failed().job_id


@breaks("I2")
def a_job_never_ends(honest: Honest) -> uuid.UUID | None:
    return recorded_job(honest.history).submitted().started().job_id


@breaks("I2")
def a_terminal_event_is_missing(honest: Honest) -> uuid.UUID | None:
    honest.history.events.remove(honest.event(honest.done, "completed"))
    return honest.done.job_id


@breaks("I2")
def a_job_ends_twice(honest: Honest) -> uuid.UUID | None:
    honest.dead.add("failed")
    return honest.dead.job_id


@breaks("I2")
def something_follows_the_end(honest: Honest) -> uuid.UUID | None:
    honest.withdrawn.add("progressed")
    return honest.withdrawn.job_id


@breaks("I2")
def the_row_ended_in_another_way(honest: Honest) -> uuid.UUID | None:
    honest.withdrawn.row["status"] = "failed"
    return honest.withdrawn.job_id


@breaks("I3")
def an_event_is_missing(honest: Honest) -> uuid.UUID | None:
    honest.history.events.remove(honest.event(honest.done, "partial"))
    return honest.done.job_id


@breaks("I3")
def a_number_is_given_twice(honest: Honest) -> uuid.UUID | None:
    honest.event(honest.dead, "partial")["event_seq"] = 2
    return honest.dead.job_id


@breaks("I3")
def the_row_counts_wrongly(honest: Honest) -> uuid.UUID | None:
    honest.dead.row["event_seq"] += 1
    return honest.dead.job_id


@breaks("I3")
def an_observation_has_the_row_before_its_event(honest: Honest) -> uuid.UUID | None:
    honest.done.observed(visible_events=honest.done.row["event_seq"] - 1)
    return honest.done.job_id


@breaks("I3")
def a_later_observation_has_fewer_events(honest: Honest) -> uuid.UUID | None:
    honest.done.observed(event_seq=1, visible_events=1)
    return honest.done.job_id


@breaks("I4")
def a_queued_job_completes(honest: Honest) -> uuid.UUID | None:
    honest.history.events.remove(honest.event(honest.ticked, "started"))
    return honest.ticked.job_id


@breaks("I4")
def an_event_says_another_status(honest: Honest) -> uuid.UUID | None:
    honest.event(honest.dead, "retried")["status"] = "running"
    return honest.dead.job_id


@breaks("I4")
def an_observation_has_a_status_without_an_event(honest: Honest) -> uuid.UUID | None:
    honest.done.observed(status="failed")
    return honest.done.job_id


@breaks("I5")
def progress_falls(honest: Honest) -> uuid.UUID | None:
    honest.event(honest.done, "progressed")["payload"]["progress_percent"] = 20
    return honest.done.job_id


@breaks("I5")
def completed_at_ninety(honest: Honest) -> uuid.UUID | None:
    honest.done.row["progress_percent"] = 90.0
    return honest.done.job_id


@breaks("I5")
def progress_without_an_event(honest: Honest) -> uuid.UUID | None:
    honest.dead.row["progress_percent"] = 50.0
    return honest.dead.job_id


@breaks("I5")
def a_later_observation_has_less_progress(honest: Honest) -> uuid.UUID | None:
    honest.dead.observed(progress_percent=1.0)
    return honest.dead.job_id


@breaks("I6")
def an_attempt_starts_twice(honest: Honest) -> uuid.UUID | None:
    honest.event(honest.dead, "started")["attempt"] = 1
    return honest.dead.job_id


@breaks("I6")
def an_older_attempt_writes(honest: Honest) -> uuid.UUID | None:
    honest.event(honest.done, "progressed")["attempt"] = 1
    return honest.done.job_id


@breaks("I6")
def a_worker_finishes_what_another_holds(honest: Honest) -> uuid.UUID | None:
    honest.event(honest.done, "completed")["actor_id"] = str(uuid.uuid4())
    return honest.done.job_id


@breaks("I6")
def an_older_attempt_commits_its_effect(honest: Honest) -> uuid.UUID | None:
    [made] = [effect for effect in honest.history.effects if effect.kind == "transaction"]
    honest.history.effects.remove(made)
    honest.history.effects.append(replace(made, attempt=1))
    return honest.done.job_id


@breaks("I7")
def an_effect_is_committed_twice(honest: Honest) -> uuid.UUID | None:
    honest.history.effects.append(Effect("transaction", *honest.done.key, 3))
    return honest.done.job_id


@breaks("I7")
def a_failed_job_has_its_effect(honest: Honest) -> uuid.UUID | None:
    honest.history.effects.append(Effect("transaction", *honest.dead.key, 2))
    return honest.dead.job_id


@breaks("I7")
def a_completed_job_lacks_its_effect(honest: Honest) -> uuid.UUID | None:
    honest.history.required_effects["tale.tell"] = ("transaction",)
    return honest.ticked.job_id


@breaks("I7")
def a_completed_job_did_nothing_outside(honest: Honest) -> uuid.UUID | None:
    honest.history.effects[:] = [e for e in honest.history.effects if e.job_id != honest.ticked.job_id]
    return honest.ticked.job_id


@breaks("I7")
def a_dedup_key_changes(honest: Honest) -> uuid.UUID | None:
    honest.history.effects.append(Effect("outside", *honest.done.key, 3, "another"))
    return honest.done.job_id


@breaks("I7")
def somebody_works_without_an_attempt(honest: Honest) -> uuid.UUID | None:
    honest.history.effects.append(Effect("outside", *honest.done.key, 9, "key-0"))
    return honest.done.job_id


@breaks("I7")
def a_callback_comes_twice(honest: Honest) -> uuid.UUID | None:
    honest.history.effects.append(Effect("bridge", *honest.refused.key, 1))
    return honest.refused.job_id


@breaks("I7")
def a_callback_never_comes(honest: Honest) -> uuid.UUID | None:
    honest.history.effects[:] = [e for e in honest.history.effects if e.kind != "bridge"]
    return honest.refused.job_id


@breaks("I7")
def a_callback_comes_for_a_job_that_has_none(honest: Honest) -> uuid.UUID | None:
    honest.history.effects.append(Effect("bridge", *honest.dead.key, 2))
    return honest.dead.job_id


@breaks("I7")
def a_callback_is_still_owed(honest: Honest) -> uuid.UUID | None:
    honest.history.owed_callbacks.append(honest.refused.job_id)
    return honest.refused.job_id


@breaks("I8")
def one_attempt_too_many(honest: Honest) -> uuid.UUID | None:
    honest.dead.row["max_attempts"] = 1
    return honest.dead.job_id


@breaks("I8")
def a_crash_does_not_count(honest: Honest) -> uuid.UUID | None:
    honest.done.row["attempt"] = 1
    return honest.done.job_id


@breaks("I9")
def a_retry_starts_too_early(honest: Honest) -> uuid.UUID | None:
    honest.event(honest.done, "snoozed")["payload"]["run_at"] = (NOON + timedelta(days=2)).isoformat()
    return honest.done.job_id


@breaks("I9")
def a_delayed_job_starts_too_early(honest: Honest) -> uuid.UUID | None:
    honest.ticked.row["scheduled_for"] = NOON + timedelta(hours=1)
    return honest.ticked.job_id
