-- Purpose: the next entries of an org after a place of its chain. Index: audit_entries_in_chain.
select e.* from duly.audit_entries e
where e.org_id = %(org_id)s
  and (e.commit_xid, e.occurred_at, e.entry_id) > (%(after_xid)s::xid8, %(after_at)s, %(after_id)s)
order by e.commit_xid, e.occurred_at, e.entry_id
limit %(limit)s
