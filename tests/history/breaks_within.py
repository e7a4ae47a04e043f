"""How the promises about a job itself are broken: I1 to I9."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta

from duly.testing.history import (
    Effect,
    Submission,
)
from tests.history.breaks import breaks
from tests.history.handmade import NOON, ORG, OTHER, tale
from tests.history.honest import Honest


@breaks("I1")
def an_acknowledged_job_is_missing(told: Honest) -> uuid.UUID | None:
    lost = uuid.uuid4()
    told.history.submissions.append(Submission("c1", ORG, "lost", "tale.tell", "ok", lost))
    return lost


@breaks("I1")
def an_acknowledged_job_is_another_orgs(told: Honest) -> uuid.UUID | None:
    told.history.submissions.append(Submission("c1", OTHER, "lost", "tale.tell", "ok", told.done.job_id))
    return told.done.job_id


@breaks("I1")
def a_job_that_nobody_asked_for(told: Honest) -> uuid.UUID | None:
    return tale(told.history).started().failed().job_id


@breaks("I1")
def a_refused_job_runs_all_the_same(told: Honest) -> uuid.UUID | None:
    return tale(told.history).asked("fail").started().failed().job_id


@breaks("I1")
def a_lost_answer_means_two_jobs(told: Honest) -> uuid.UUID | None:
    twice = tale(told.history, idempotency_key=told.refused.row["idempotency_key"])
    twice.row["created_at"] += timedelta(seconds=1)
    return twice.started().failed().job_id


@breaks("I2")
def a_job_never_ends(told: Honest) -> uuid.UUID | None:
    return tale(told.history).asked().started().job_id


@breaks("I2")
def a_terminal_event_is_missing(told: Honest) -> uuid.UUID | None:
    told.history.events.remove(told.event(told.done, "completed"))
    return told.done.job_id


@breaks("I2")
def a_job_ends_twice(told: Honest) -> uuid.UUID | None:
    told.dead.tell("failed")
    return told.dead.job_id


@breaks("I2")
def something_follows_the_end(told: Honest) -> uuid.UUID | None:
    told.withdrawn.tell("progressed")
    return told.withdrawn.job_id


@breaks("I2")
def the_row_ended_in_another_way(told: Honest) -> uuid.UUID | None:
    told.withdrawn.row["status"] = "failed"
    return told.withdrawn.job_id


@breaks("I3")
def an_event_is_missing(told: Honest) -> uuid.UUID | None:
    told.history.events.remove(told.event(told.done, "partial"))
    return told.done.job_id


@breaks("I3")
def a_number_is_given_twice(told: Honest) -> uuid.UUID | None:
    told.event(told.dead, "partial")["event_seq"] = 2
    return told.dead.job_id


@breaks("I3")
def the_row_counts_wrongly(told: Honest) -> uuid.UUID | None:
    told.dead.row["event_seq"] += 1
    return told.dead.job_id


@breaks("I3")
def a_look_sees_the_row_before_its_event(told: Honest) -> uuid.UUID | None:
    told.done.seen(events_seen=told.done.row["event_seq"] - 1)
    return told.done.job_id


@breaks("I3")
def a_later_look_sees_less(told: Honest) -> uuid.UUID | None:
    told.done.seen(event_seq=1, events_seen=1)
    return told.done.job_id


@breaks("I4")
def a_queued_job_completes(told: Honest) -> uuid.UUID | None:
    told.history.events.remove(told.event(told.ticked, "started"))
    return told.ticked.job_id


@breaks("I4")
def an_event_says_another_status(told: Honest) -> uuid.UUID | None:
    told.event(told.dead, "retried")["status"] = "running"
    return told.dead.job_id


@breaks("I4")
def a_look_sees_a_status_that_no_event_told(told: Honest) -> uuid.UUID | None:
    told.done.seen(status="failed")
    return told.done.job_id


@breaks("I5")
def progress_falls(told: Honest) -> uuid.UUID | None:
    told.event(told.done, "progressed")["payload"]["progress_percent"] = 20
    return told.done.job_id


@breaks("I5")
def completed_at_ninety(told: Honest) -> uuid.UUID | None:
    told.done.row["progress_percent"] = 90.0
    return told.done.job_id


@breaks("I5")
def progress_without_an_event(told: Honest) -> uuid.UUID | None:
    told.dead.row["progress_percent"] = 50.0
    return told.dead.job_id


@breaks("I5")
def a_later_look_sees_less_progress(told: Honest) -> uuid.UUID | None:
    told.dead.seen(progress_percent=1.0)
    return told.dead.job_id


@breaks("I6")
def an_attempt_starts_twice(told: Honest) -> uuid.UUID | None:
    told.event(told.dead, "started")["attempt"] = 1
    return told.dead.job_id


@breaks("I6")
def an_older_attempt_writes(told: Honest) -> uuid.UUID | None:
    told.event(told.done, "progressed")["attempt"] = 1
    return told.done.job_id


@breaks("I6")
def a_worker_finishes_what_another_holds(told: Honest) -> uuid.UUID | None:
    told.event(told.done, "completed")["actor_id"] = str(uuid.uuid4())
    return told.done.job_id


@breaks("I6")
def an_older_attempt_commits_its_effect(told: Honest) -> uuid.UUID | None:
    [made] = [effect for effect in told.history.effects if effect.kind == "transaction"]
    told.history.effects.remove(made)
    told.history.effects.append(replace(made, attempt=1))
    return told.done.job_id


@breaks("I7")
def an_effect_is_committed_twice(told: Honest) -> uuid.UUID | None:
    told.history.effects.append(Effect("transaction", *told.done.key, 3))
    return told.done.job_id


@breaks("I7")
def a_failed_job_has_its_effect(told: Honest) -> uuid.UUID | None:
    told.history.effects.append(Effect("transaction", *told.dead.key, 2))
    return told.dead.job_id


@breaks("I7")
def a_completed_job_lacks_its_effect(told: Honest) -> uuid.UUID | None:
    told.history.makes["tale.tell"] = ("transaction",)
    return told.ticked.job_id


@breaks("I7")
def a_completed_job_did_nothing_outside(told: Honest) -> uuid.UUID | None:
    told.history.effects[:] = [e for e in told.history.effects if e.job_id != told.ticked.job_id]
    return told.ticked.job_id


@breaks("I7")
def a_dedup_key_changes(told: Honest) -> uuid.UUID | None:
    told.history.effects.append(Effect("outside", *told.done.key, 3, "another"))
    return told.done.job_id


@breaks("I7")
def somebody_works_without_an_attempt(told: Honest) -> uuid.UUID | None:
    told.history.effects.append(Effect("outside", *told.done.key, 9, "key-0"))
    return told.done.job_id


@breaks("I7")
def a_callback_comes_twice(told: Honest) -> uuid.UUID | None:
    told.history.effects.append(Effect("bridge", *told.refused.key, 1))
    return told.refused.job_id


@breaks("I7")
def a_callback_never_comes(told: Honest) -> uuid.UUID | None:
    told.history.effects[:] = [e for e in told.history.effects if e.kind != "bridge"]
    return told.refused.job_id


@breaks("I7")
def a_callback_comes_for_a_job_that_has_none(told: Honest) -> uuid.UUID | None:
    told.history.effects.append(Effect("bridge", *told.dead.key, 2))
    return told.dead.job_id


@breaks("I7")
def a_callback_is_still_owed(told: Honest) -> uuid.UUID | None:
    told.history.debts.append(told.refused.job_id)
    return told.refused.job_id


@breaks("I8")
def one_attempt_too_many(told: Honest) -> uuid.UUID | None:
    told.dead.row["max_attempts"] = 1
    return told.dead.job_id


@breaks("I8")
def a_crash_does_not_count(told: Honest) -> uuid.UUID | None:
    told.done.row["attempt"] = 1
    return told.done.job_id


@breaks("I9")
def a_retry_starts_too_early(told: Honest) -> uuid.UUID | None:
    told.event(told.done, "snoozed")["payload"]["run_at"] = (NOON + timedelta(days=2)).isoformat()
    return told.done.job_id


@breaks("I9")
def a_delayed_job_starts_too_early(told: Honest) -> uuid.UUID | None:
    told.ticked.row["scheduled_for"] = NOON + timedelta(hours=1)
    return told.ticked.job_id
