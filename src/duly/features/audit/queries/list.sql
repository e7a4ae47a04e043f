-- Purpose: the next entries of an org, the newest first. Index: the primary key, backwards.
select e.* from duly.audit_entries e
where e.org_id = %(org_id)s
  and e.occurred_at <= %(before_at)s and (e.occurred_at, e.entry_id) < (%(before_at)s, %(before_id)s)
  and e.occurred_at >= %(since)s
order by e.occurred_at desc, e.entry_id desc
limit %(look)s
