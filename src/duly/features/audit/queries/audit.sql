-- name: count_unsealed
-- Purpose: count the entries of an org after its last seal, and those of them up to the mark, which had a seal.
-- Index: audit_entries_in_chain.
select count(*) as unsealed,
       count(*) filter (
           where (e.commit_xid, e.occurred_at, e.entry_id) <= (%(mark_xid)s::xid8, %(mark_at)s, %(mark_id)s)
       ) as seal_lost
from duly.audit_entries e
where e.org_id = %(org_id)s
  and (e.commit_xid, e.occurred_at, e.entry_id) > (%(after_xid)s::xid8, %(after_at)s, %(after_id)s)

-- name: list
-- Purpose: list the entries of an org, newest first. Index: the primary key, backwards.
select e.* from duly.audit_entries e
where e.org_id = %(org_id)s
  and e.occurred_at <= %(before_at)s and (e.occurred_at, e.entry_id) < (%(before_at)s, %(before_id)s)
  and e.occurred_at >= %(since)s
order by e.occurred_at desc, e.entry_id desc
limit %(limit)s

-- name: list_orgs
-- Purpose: list every org that exists, or has entries or seals. Reads all of them, as a verification does anyway.
select o.org_id from duly.organizations o
union
select s.org_id from duly.audit_seals s
union
select e.org_id from duly.audit_entries e
order by 1

-- name: lock_mark
-- Purpose: return the position after which sealing continues; no row while another sealer works.
-- Locks: the mark, until the end of the round.
select m.commit_xid, m.occurred_at, m.entry_id, duly.now() as now,
       m.commit_xid > pg_snapshot_xmax(pg_current_snapshot()) as ahead,
       -- A sealer that hangs must not block the others.
       set_config('idle_in_transaction_session_timeout', '30s', true)
from duly.audit_mark m
for update skip locked

-- name: move_mark
-- Purpose: record that everything up to this position is sealed. Locks: the mark, which the round holds already.
update duly.audit_mark
set commit_xid = %(upto_xid)s::xid8, occurred_at = %(upto_at)s, entry_id = %(upto_id)s

-- name: read_after
-- Purpose: read the next entries of an org after a position of its chain. Index: audit_entries_in_chain.
select e.* from duly.audit_entries e
where e.org_id = %(org_id)s
  and (e.commit_xid, e.occurred_at, e.entry_id) > (%(after_xid)s::xid8, %(after_at)s, %(after_id)s)
order by e.commit_xid, e.occurred_at, e.entry_id
limit %(limit)s

-- name: read_chain
-- Purpose: read the entries of an org between two positions of its chain, in order. Index: audit_entries_in_chain.
select e.* from duly.audit_entries e
where e.org_id = %(org_id)s
  and (e.commit_xid, e.occurred_at, e.entry_id) > (%(after_xid)s::xid8, %(after_at)s, %(after_id)s)
  and (e.commit_xid, e.occurred_at, e.entry_id) <= (%(upto_xid)s::xid8, %(upto_at)s, %(upto_id)s)
order by e.commit_xid, e.occurred_at, e.entry_id

-- name: read_last_seals
-- Purpose: read the last seal of each of these orgs. Index: the primary key, backwards.
select s.*
from unnest(%(org_ids)s::uuid[]) o(org_id)
cross join lateral (
    select l.* from duly.audit_seals l where l.org_id = o.org_id order by l.seal_seq desc limit 1
) s

-- name: read_mark
-- Purpose: read the position up to which entries are sealed, and the start of the retained entries.
select m.commit_xid, m.occurred_at, m.entry_id,
       (select min(p.starts_at) from duly.partitions p where p.parent = 'audit_entries') as retained_since
from duly.audit_mark m

-- name: read_seals
-- Purpose: read the next seals of an org. Index: the primary key.
select s.* from duly.audit_seals s
where s.org_id = %(org_id)s and s.seal_seq > %(after)s
order by s.seal_seq
limit %(limit)s

-- name: read_unsealed
-- Purpose: read the next entries of all orgs without a seal, in the order of the chain. Index: audit_entries_by_commit.
-- Only transactions older than every open one: no entry can commit later that would belong before them.
select e.*
from duly.audit_entries e
where e.commit_xid >= %(after_xid)s::xid8
  and (e.commit_xid, e.occurred_at, e.entry_id) > (%(after_xid)s::xid8, %(after_at)s, %(after_id)s)
  and e.commit_xid < pg_snapshot_xmin(pg_current_snapshot())
order by e.commit_xid, e.occurred_at, e.entry_id
limit %(limit)s

-- name: write_seals
-- Purpose: write the next seals of orgs. Fence: the primary key; a chain has one seal of a number.
insert into duly.audit_seals (
    org_id, seal_seq, version, last_commit_xid, last_occurred_at, last_entry_id, entry_count, entry_ids, digests,
    previous_hash, hash, sealed_at)
select s.org_id, s.seal_seq, s.version, s.last_commit_xid, s.last_occurred_at, s.last_entry_id, s.entry_count,
       s.entry_ids, s.digests, s.previous_hash, s.hash, s.sealed_at
from jsonb_to_recordset(%(seals)s) s(
    org_id uuid, seal_seq bigint, version smallint, last_commit_xid xid8, last_occurred_at timestamptz,
    last_entry_id uuid, entry_count bigint, entry_ids uuid[], digests bytea[], previous_hash bytea, hash bytea,
    sealed_at timestamptz)
