-- Purpose: list the next jobs of an org that are queued or claimed, newest first.
-- Index: loose scans over ready's primary key, one step per lane and one per priority of the org, then the last rows of
-- each; scheduled_by_org. Reads up to `limit` rows of each. Claims are few, one per running batch; then the primary key
-- of the states.
with recursive lanes as (
    (select r.queue as lane from duly.ready r where 'queued' = any (%(statuses)s) order by r.queue limit 1)
    union all
    select (select r.queue from duly.ready r where r.queue > l.lane order by r.queue limit 1)
    from lanes l where l.lane is not null
), ranks as (
    select l.lane, first.rank
    from lanes l
    cross join lateral (
        select r.rank from duly.ready r
        where r.queue = l.lane and r.org_id = %(org_id)s order by r.rank limit 1) first
    where %(queue)s::text is null or split_part(l.lane, '#', 1) = %(queue)s
    union all
    select k.lane, next.rank
    from ranks k
    cross join lateral (
        select r.rank from duly.ready r
        where r.queue = k.lane and r.org_id = %(org_id)s and r.rank > k.rank order by r.rank limit 1) next
), active as (
    select w.job_id
    from ranks k
    cross join lateral (
        select r.job_id from duly.ready r
        where r.queue = k.lane and r.org_id = %(org_id)s and r.rank = k.rank
          and r.job_id >= %(first_job)s and r.job_id < %(before_job)s
        order by r.job_id desc limit %(limit)s) w
    union all
    (select s.job_id from duly.scheduled s
     where 'queued' = any (%(statuses)s) and s.org_id = %(org_id)s
       and s.job_id >= %(first_job)s and s.job_id < %(before_job)s
     order by s.job_id desc limit %(limit)s)
    union all
    select distinct h.job_id
    from duly.held_jobs h
    where h.org_id = %(org_id)s and h.job_id >= %(first_job)s and h.job_id < %(before_job)s and h.status = any (%(statuses)s)
)
select a.job_id, null::timestamptz as at from active a order by a.job_id desc limit %(limit)s
