-- Purpose: the entries of an org between two places of its chain, in order. Index: audit_entries_in_chain.
select e.* from duly.audit_entries e
where e.org_id = %(org_id)s
  and (e.commit_xid, e.occurred_at, e.entry_id) > (%(after_xid)s::xid8, %(after_at)s, %(after_id)s)
  and (e.commit_xid, e.occurred_at, e.entry_id) <= (%(upto_xid)s::xid8, %(upto_at)s, %(upto_id)s)
order by e.commit_xid, e.occurred_at, e.entry_id
