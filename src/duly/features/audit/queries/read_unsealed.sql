-- Purpose: the next entries of all orgs that have no seal yet, in the order of the chain. Index: audit_entries_by_commit.
-- Only of transactions before which none is open: none can come later that would belong before them.
select e.*
from duly.audit_entries e
where e.commit_xid >= %(commit_xid)s::xid8
  and (e.commit_xid, e.occurred_at, e.entry_id) > (%(commit_xid)s::xid8, %(occurred_at)s, %(entry_id)s)
  and e.commit_xid < pg_snapshot_xmin(pg_current_snapshot())
order by e.commit_xid, e.occurred_at, e.entry_id
limit %(limit)s
