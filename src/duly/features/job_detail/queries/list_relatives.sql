-- Purpose: list the jobs around a job: its parent, the jobs that it replays and that replay it, and its children.
-- Index: primary keys of records and states; of both ledgers for replays, whose keys name the replayed job; for children the
-- primary key of the records between two ids, up to `scanned` rows.
with recursive before(job_id, depth) as (
    select %(replay_of)s::uuid, 1
    union all
    select r.replay_of, b.depth + 1
    from before b join duly.job_records r on r.org_id = %(org_id)s and r.job_id = b.job_id
    where r.replay_of is not null and b.depth < %(depth)s
), after(job_id, depth) as (
    select %(job_id)s::uuid, 0
    union all
    select r.job_id, a.depth + 1
    from after a
    -- `offset` separates it: behind row level security, a key that is still to be computed is not looked up in an index.
    cross join lateral (
        select k.key, duly.key_hash(k.key) as key_hash
        from generate_series(1, 5) n cross join lateral format('replay:%%s:%%s', a.job_id, n) k(key) offset 0) k
    cross join lateral (
        select l.job_id from duly.key_ledger l where l.org_id = %(org_id)s and l.key_hash = k.key_hash
        union all
        select l.job_id from duly.ledger l where l.org_id = %(org_id)s and l.idempotency_key = k.key) l
    join duly.job_records r on r.org_id = %(org_id)s and r.job_id = l.job_id and r.replay_of = a.job_id
    where a.depth < %(depth)s
), child as (
    select c.job_id from (
        select r.job_id, r.parent_id from duly.job_records r
        where r.org_id = %(org_id)s and r.job_id > %(first_child)s and r.job_id < %(last_child)s
        order by r.job_id limit %(scanned)s) c
    where c.parent_id = %(job_id)s
    limit %(limit)s
), related as (
    select 'parent' as relation, %(parent_id)s::uuid as job_id, 0 as depth where %(parent_id)s::uuid is not null
    union all (select 'replay_of', job_id, depth from before where job_id is not null limit %(limit)s)
    union all (select 'replayed_by', job_id, depth from after where depth > 0 limit %(limit)s)
    union all select 'child', job_id, 0 from child
)
select f.relation, f.depth, f.job_id, r.job_type, r.subject_id, r.created_at, coalesce(s.status, 'queued') as status,
       coalesce(s.outcome, 'pending') as outcome
from related f
join duly.job_records r on r.org_id = %(org_id)s and r.job_id = f.job_id
left join lateral (select x.* from duly.state_of(%(org_id)s, f.job_id) x limit 1) s on true
order by f.relation, f.depth, f.job_id
