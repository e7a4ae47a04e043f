-- name: list
-- Purpose: the next jobs of the session's org, the newest first.
-- Index: the primary key of the records, backwards. Reads `look` rows at most.
select r.job_id, null::timestamptz as at
from duly.job_records r
where r.org_id = %(org_id)s and r.job_id >= %(first_job)s and r.job_id < %(before_job)s
order by r.job_id desc
limit %(look)s

-- name: list_ended
-- Purpose: the next jobs of the session's org that ended in this way, the last to end first.
-- Index: job_states_ended. Reads `look` states at most, and those that ended at the same moment.
select s.job_id, s.finished_at as at
from duly.job_states s
where s.org_id = %(org_id)s and s.status = %(status)s and s.finished_at is not null
  and s.finished_at <= %(before_at)s and (s.finished_at, s.job_id) < (%(before_at)s, %(before_job)s)
order by s.finished_at desc, s.job_id desc
limit %(look)s

-- name: list_of_kind
-- Purpose: the next jobs of an org that died of one kind of failure, the last to die first.
-- Index: dead_letters_of_kind. Reads `look` letters at most, and those of the same moment.
select l.job_id, l.dead_at as at
from duly.dead_letters l
where l.org_id = %(org_id)s and l.fingerprint = %(fingerprint)s
  and l.dead_at <= %(before_at)s and (l.dead_at, l.job_id) < (%(before_at)s, %(before_job)s)
order by l.dead_at desc, l.job_id desc
limit %(look)s

-- name: list_of_subject
-- Purpose: the next jobs of a subject, the newest first. Index: job_records_by_subject. Reads `look` rows at most.
select r.job_id, null::timestamptz as at
from duly.job_records r
where r.org_id = %(org_id)s and r.subject_id = %(subject_id)s
  and r.job_id >= %(first_job)s and r.job_id < %(before_job)s
order by r.job_id desc
limit %(look)s
