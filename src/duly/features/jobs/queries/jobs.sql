-- name: list
-- Purpose: list the next jobs of the session's org, newest first.
-- Index: the primary key of the records, backwards. Reads up to `limit` rows.
select r.job_id, null::timestamptz as at
from duly.job_records r
where r.org_id = %(org_id)s and r.job_id >= %(first_job)s and r.job_id < %(before_job)s
order by r.job_id desc
limit %(limit)s

-- name: list_by_subject
-- Purpose: list the next jobs of a subject, newest first. Index: job_records_by_subject. Reads up to `limit` rows.
select r.job_id, null::timestamptz as at
from duly.job_records r
where r.org_id = %(org_id)s and r.subject_id = %(subject_id)s
  and r.job_id >= %(first_job)s and r.job_id < %(before_job)s
order by r.job_id desc
limit %(limit)s

-- name: list_ended
-- Purpose: list the next jobs of the session's org with one final status, last ended first.
-- Index: job_states_ended, and the primary key of the event batches. Reads up to `limit` states and batches, and those
-- that ended at the same time.
select e.job_id, e.finished_at as at
from (
    (select s.job_id, s.finished_at
     from duly.job_states s
     where s.org_id = %(org_id)s and s.status = %(status)s and s.finished_at is not null
       and s.finished_at <= %(before_at)s and (s.finished_at, s.job_id) < (%(before_at)s, %(before_job)s)
     order by s.finished_at desc, s.job_id desc
     limit %(limit)s)
    union all
    (select b.job_id, b.occurred_at
     from duly.batched_events b
     where %(status)s = 'completed' and b.org_id = %(org_id)s and b.event_type = 'job.completed'
       and b.occurred_at <= %(before_at)s and (b.occurred_at, b.job_id) < (%(before_at)s, %(before_job)s)
     order by b.occurred_at desc, b.job_id desc
     limit %(limit)s)
) e
order by e.finished_at desc, e.job_id desc
limit %(limit)s

-- name: list_by_fingerprint
-- Purpose: list the next jobs of an org with dead letters of one fingerprint, last dead first.
-- Index: dead_letters_of_kind. Reads up to `limit` dead letters, and those of the same time.
select l.job_id, l.dead_at as at
from duly.dead_letters l
where l.org_id = %(org_id)s and l.fingerprint = %(fingerprint)s
  and l.dead_at <= %(before_at)s and (l.dead_at, l.job_id) < (%(before_at)s, %(before_job)s)
order by l.dead_at desc, l.job_id desc
limit %(limit)s

-- name: read_transaction_time
-- Purpose: read the time that this transaction writes to its rows.
select duly.now()
