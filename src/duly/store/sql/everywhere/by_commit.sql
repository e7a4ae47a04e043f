-- Purpose: the next events of all orgs, the last to commit first, and whether each is of the kind that is looked for: the
-- one that began a job, or that completed it. Those of other kinds count as looked at.
-- Index: event_log_by_commit, backwards. Reads `look` events at most, and those of the same transaction.
select e.org_id, e.job_id, e.commit_xid::text, e.event_seq, e.event_type = %(event_type)s
from duly.event_log e
where e.commit_xid <= %(xid)s::xid8
  and (e.commit_xid, e.job_id, e.event_seq) < (%(xid)s::xid8, %(before_job)s, %(event_seq)s)
order by e.commit_xid desc, e.job_id desc, e.event_seq desc
limit %(look)s
