"""Consistency of all jobs together, after any faults: each query must return no row."""

from __future__ import annotations

import psycopg

BOOKS = {
    "events have gaps, or the state miscounts them": """
        select r.job_id from duly.jobs r join duly.job_events e using (org_id, job_id)
        group by r.job_id, r.event_seq having count(*) <> max(e.event_seq) or count(*) <> r.event_seq
    """,
    "the last event is not the end, or there are two ends": """
        select r.job_id from duly.jobs r join duly.job_events e using (org_id, job_id)
        group by r.job_id, r.status, r.event_seq
        having count(*) filter (where e.event_type in ('job.completed', 'job.failed', 'job.canceled'))
               <> (r.status in ('completed', 'failed', 'canceled'))::integer
            or bool_or(e.event_type = 'job.' || r.status and e.event_seq = r.event_seq)
               <> true and r.status in ('completed', 'failed', 'canceled')
    """,
    "an event is missing in the order of commits, or is there twice": """
        select job_id from (
            select org_id, job_id, event_seq, event_type, commit_xid from duly.job_events
            except all
            select org_id, job_id, event_seq, event_type, commit_xid from duly.all_events
        ) missing
        union all
        select job_id from (
            select org_id, job_id, event_seq, event_type, commit_xid from duly.all_events
            except all
            select org_id, job_id, event_seq, event_type, commit_xid from duly.job_events
        ) unknown
    """,
    "a job has a state, and an end of the plain path": """
        select s.job_id from duly.job_states s join duly.job_ends e using (org_id, job_id)
    """,
    "a queued job waits nowhere or twice, or another one waits": """
        select r.job_id from duly.jobs r
        left join (select job_id from duly.ready union all select job_id from duly.scheduled) q using (job_id)
        group by r.job_id, r.status having count(q.job_id) <> (r.status = 'queued')::integer
    """,
    "a run identity is held by an ended job, or an active one holds none": """
        select r.job_id from duly.jobs r left join duly.active_runs a using (org_id, job_id)
        where r.run_identity_hash is not null
          and (a.job_id is not null) <> (r.status in ('queued', 'running', 'partial'))
    """,
    "a result is missing or too many": """
        select r.job_id from duly.jobs r left join duly.result_finals f using (org_id, job_id)
        group by r.job_id, r.status having count(f.job_id) <> (r.status = 'completed')::integer
    """,
    "a job is in no ledger": "select job_id from duly.job_records except select job_id from duly.key_ledger",
    "a dead letter too few or too many": """
        select r.job_id from duly.jobs r full join duly.dead_letters d using (org_id, job_id)
        where (d.job_id is not null) <> (r.outcome = 'dead')
    """,
}


def check_consistency(sql: psycopg.Connection) -> None:
    """Check all queries."""
    for claim, query in BOOKS.items():
        assert sql.execute(query).fetchall() == [], claim
