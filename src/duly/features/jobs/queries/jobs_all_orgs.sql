-- name: by_commit
-- Purpose: the next events of all orgs, the last to commit first, and whether each is of the kind that is looked for: the
-- one that began a job, or that completed it. Those of other kinds count as looked at.
-- Index: event_log_by_commit, backwards, as it is: a transaction may have written any number of events, and putting those
-- in order would read them all. The log is never changed, so what was read of a transaction is told by its number.
select e.org_id, e.job_id, e.commit_xid::text, e.event_type = %(event_type)s
from duly.event_log e
where e.commit_xid <= %(xid)s::xid8
order by e.commit_xid desc
offset %(skip)s
limit %(look)s

-- name: canceled
-- Purpose: the next jobs of all orgs that were canceled, the last to end first. Index: event_log_rare, which has the event
-- that ended each. Reads `look` events at most, and those of the same moment.
select e.org_id, e.job_id, e.occurred_at
from duly.event_log e
where e.event_type = 'job.canceled'
  and e.occurred_at <= %(before_at)s and (e.occurred_at, e.job_id) < (%(before_at)s, %(before_job)s)
order by e.occurred_at desc, e.job_id desc
limit %(look)s

-- name: failed
-- Purpose: the next jobs of all orgs that failed, the last to end first. Index: event_log_rare, which has the event
-- that ended each. Reads `look` events at most, and those of the same moment.
select e.org_id, e.job_id, e.occurred_at
from duly.event_log e
where e.event_type = 'job.failed'
  and e.occurred_at <= %(before_at)s and (e.occurred_at, e.job_id) < (%(before_at)s, %(before_job)s)
order by e.occurred_at desc, e.job_id desc
limit %(look)s

-- name: find
-- Purpose: which org a job belongs to. Index: the orgs', then the primary key of the records, once for each org.
select r.org_id
from duly.organizations o
cross join lateral (
    select r.org_id from duly.job_records r where r.org_id = o.org_id and r.job_id = %(job_id)s limit 1) r
limit 1

-- name: of_kind
-- Purpose: the next jobs of all orgs that died of one kind of failure, the last to die first.
-- Index: dead_letters_everywhere. Reads `look` letters at most, and those of the same moment.
select l.org_id, l.job_id, l.dead_at
from duly.dead_letters l
where l.fingerprint = %(fingerprint)s
  and l.dead_at <= %(before_at)s and (l.dead_at, l.job_id) < (%(before_at)s, %(before_job)s)
order by l.dead_at desc, l.job_id desc
limit %(look)s

-- name: scheduled
-- Purpose: the next jobs of all orgs whose time has not come, the first due first. Index: the primary key.
select s.run_at, s.org_id, s.job_id
from duly.scheduled s
where s.run_at >= %(after_at)s and (s.run_at, s.org_id, s.job_id) > (%(after_at)s, %(after_org)s, %(after_job)s)
order by s.run_at, s.org_id, s.job_id
limit %(look)s
