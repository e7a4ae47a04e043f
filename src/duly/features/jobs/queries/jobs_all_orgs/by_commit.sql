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
