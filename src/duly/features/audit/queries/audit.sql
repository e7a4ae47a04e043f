-- name: count_rest
-- Purpose: how many entries of an org lie after a place of its chain, and how many of them before the mark, where all
-- have their seal. Index: audit_entries_in_chain.
select count(*) as unsealed,
       count(*) filter (
           where (e.commit_xid, e.occurred_at, e.entry_id) <= (%(mark_xid)s::xid8, %(mark_at)s, %(mark_id)s)) as bare
from duly.audit_entries e
where e.org_id = %(org_id)s
  and (e.commit_xid, e.occurred_at, e.entry_id) > (%(after_xid)s::xid8, %(after_at)s, %(after_id)s)

-- name: hold_mark
-- Purpose: where the sealing goes on; no row if somebody else is at it. Locks: the mark, until the end of the round.
select m.commit_xid, m.occurred_at, m.entry_id, duly.now() as now,
       m.commit_xid > pg_snapshot_xmax(pg_current_snapshot()) as ahead,
       -- Should the holder hang, nobody else could go on.
       set_config('idle_in_transaction_session_timeout', '30s', true)
from duly.audit_mark m
for update skip locked

-- name: list
-- Purpose: the next entries of an org, the newest first. Index: the primary key, backwards.
select e.* from duly.audit_entries e
where e.org_id = %(org_id)s
  and e.occurred_at <= %(before_at)s and (e.occurred_at, e.entry_id) < (%(before_at)s, %(before_id)s)
  and e.occurred_at >= %(since)s
order by e.occurred_at desc, e.entry_id desc
limit %(look)s

-- name: list_orgs
-- Purpose: every org that is known, or has entries or seals. Reads all of them, as a verification does anyway.
select o.org_id from duly.organizations o
union
select s.org_id from duly.audit_seals s
union
select e.org_id from duly.audit_entries e
order by 1

-- name: move_mark
-- Purpose: say that everything up to here has its seal. Locks: the mark, which the round holds already.
update duly.audit_mark
set commit_xid = %(commit_xid)s::xid8, occurred_at = %(occurred_at)s, entry_id = %(entry_id)s

-- name: read_chain
-- Purpose: the entries of an org between two places of its chain, in order. Index: audit_entries_in_chain.
select e.* from duly.audit_entries e
where e.org_id = %(org_id)s
  and (e.commit_xid, e.occurred_at, e.entry_id) > (%(after_xid)s::xid8, %(after_at)s, %(after_id)s)
  and (e.commit_xid, e.occurred_at, e.entry_id) <= (%(upto_xid)s::xid8, %(upto_at)s, %(upto_id)s)
order by e.commit_xid, e.occurred_at, e.entry_id

-- name: read_last_seals
-- Purpose: the last seal of each of these orgs. Index: the primary key, backwards.
select s.*
from unnest(%(org_ids)s::uuid[]) o(org_id)
cross join lateral (
    select l.* from duly.audit_seals l where l.org_id = o.org_id order by l.seal_seq desc limit 1
) s

-- name: read_mark
-- Purpose: how far the sealing has come, and since when entries are kept.
select m.commit_xid, m.occurred_at, m.entry_id,
       (select min(p.starts_at) from duly.partitions p where p.parent = 'audit_entries') as kept_since
from duly.audit_mark m

-- name: read_rest
-- Purpose: the next entries of an org after a place of its chain. Index: audit_entries_in_chain.
select e.* from duly.audit_entries e
where e.org_id = %(org_id)s
  and (e.commit_xid, e.occurred_at, e.entry_id) > (%(after_xid)s::xid8, %(after_at)s, %(after_id)s)
order by e.commit_xid, e.occurred_at, e.entry_id
limit %(limit)s

-- name: read_seals
-- Purpose: the next seals of an org. Index: the primary key.
select s.* from duly.audit_seals s
where s.org_id = %(org_id)s and s.seal_seq > %(after)s
order by s.seal_seq
limit %(limit)s
