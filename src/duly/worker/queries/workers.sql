-- Workers: registration, heartbeat, presence, and how they are declared lost.

-- name: register
-- Register a worker; its id is new at every boot. A second time changes nothing: the first answer may have been lost.
-- Index: the primary key.
insert into duly.workers (worker_id, name, host, pid, version, queues, slots, lease, layout)
values (%(worker_id)s, %(name)s, %(host)s, %(pid)s, %(version)s, %(queues)s, %(slots)s, %(lease)s, 4)
on conflict (worker_id) do nothing

-- name: beat
-- One heartbeat for all jobs of a worker; returns whether a drain was requested. No row: the worker was declared lost,
-- and holds no job any more. Index: the primary key; one heap-only update.
update duly.workers set heartbeat_at = duly.now(), clock_offset = %(clock)s::timestamptz - duly.now(),
    silence = %(silence)s,
    draining_at = coalesce(draining_at, case when %(draining)s then duly.now() end)
where worker_id = %(worker_id)s and stopped_at is null and lost_at is null
returning heartbeat_at, drain_requested_at is not null

-- name: list_held_updates
-- Those of a worker's jobs with a cancel request or a lost lease, or that have ended.
-- Index: the primary keys of states and ends, once per job.
select h.org_id, h.job_id, h.attempt, s.canceled_by, s.cancel_reason,
       s.attempt = h.attempt and s.status in ('running', 'partial') as held
from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[], %(attempts)s::integer[]) h(org_id, job_id, attempt)
join duly.job_states s using (org_id, job_id)
where s.cancel_requested_at is not null or s.attempt <> h.attempt or s.status not in ('running', 'partial')
union all
select h.org_id, h.job_id, h.attempt, null, null, false
from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[], %(attempts)s::integer[]) h(org_id, job_id, attempt)
join duly.job_ends e using (org_id, job_id)

-- name: hold_presence
-- Take the lock that marks the worker as present. It lasts beyond the transaction and ends with this session, and so
-- with the process at its other end. Shared, because the previous session may not have ended yet; the lock of an
-- earlier id is released first.
select pg_advisory_unlock_all(), pg_try_advisory_lock_shared(uuid_hash_extended(%(worker_id)s, 0))

-- name: stop
-- Mark a worker as stopped. It has no claims: it finished or gave back every job. Index: the primary key.
update duly.workers set stopped_at = duly.now() where worker_id = %(worker_id)s and stopped_at is null

-- name: list_absent
-- Workers whose connection is gone and that have been silent for longer than is allowed then. A worker without a
-- heartbeat since the server started may be about to reconnect: for it only the lease counts.
-- Index: workers_beating; all locks of the server are read, but only if a worker is silent.
select w.worker_id, duly.now()
from duly.workers w
where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.silence < duly.now()
  and w.heartbeat_at > pg_postmaster_start_time()
  and not exists (
      select from pg_locks l
      where l.locktype = 'advisory' and l.granted and l.objsubid = 1
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
        and (l.classid::bigint << 32 | l.objid::bigint) = uuid_hash_extended(w.worker_id, 0))

-- name: declare_lost
-- Declare workers lost whose last heartbeat is older than their lease or, if they are absent, than their silence.
-- Locks: their rows, skipping a heartbeat that is just being written. Index: workers_beating.
with silent as materialized (
    select w.worker_id, a.since
    from duly.workers w
    left join unnest(%(absent)s::uuid[], %(since)s::timestamptz[]) a(worker_id, since) on a.worker_id = w.worker_id
    where w.stopped_at is null and w.lost_at is null
      and w.heartbeat_at + case when a.since is null then w.lease else least(w.silence, w.lease) end < duly.now()
    order by w.worker_id for update of w skip locked
)
update duly.workers w set lost_at = duly.now(), absent_since = s.since from silent s where w.worker_id = s.worker_id
returning w.worker_id, w.absent_since
