-- Purpose: how many entries of an org lie after a place of its chain, and how many of them before the mark, where all
-- have their seal. Index: audit_entries_in_chain.
select count(*) as unsealed,
       count(*) filter (
           where (e.commit_xid, e.occurred_at, e.entry_id) <= (%(mark_xid)s::xid8, %(mark_at)s, %(mark_id)s)) as bare
from duly.audit_entries e
where e.org_id = %(org_id)s
  and (e.commit_xid, e.occurred_at, e.entry_id) > (%(after_xid)s::xid8, %(after_at)s, %(after_id)s)
