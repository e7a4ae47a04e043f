-- Purpose: the next jobs of an org that wait, the newest first, and which of them are of a job type.
-- Index: loose scans over ready's primary key, one step per lane and one per priority of the org, then the last rows of
-- each; scheduled_by_org; the primary key of the records. Reads `look` rows of each at most.
with recursive lanes as (
    (select r.queue as lane from duly.ready r order by r.queue limit 1)
    union all
    select (select r.queue from duly.ready r where r.queue > l.lane order by r.queue limit 1)
    from lanes l where l.lane is not null
), ranks as (
    select l.lane, first.rank
    from lanes l
    cross join lateral (
        select r.rank from duly.ready r
        where r.queue = l.lane and r.org_id = %(org_id)s order by r.rank limit 1) first
    union all
    select k.lane, next.rank
    from ranks k
    cross join lateral (
        select r.rank from duly.ready r
        where r.queue = k.lane and r.org_id = %(org_id)s and r.rank > k.rank order by r.rank limit 1) next
), waiting as (
    select w.job_id
    from ranks k
    cross join lateral (
        select r.job_id from duly.ready r
        where r.queue = k.lane and r.org_id = %(org_id)s and r.rank = k.rank and r.job_id < %(before_job)s
        order by r.job_id desc limit %(look)s) w
    union all
    (select s.job_id from duly.scheduled s
     where s.org_id = %(org_id)s and s.job_id < %(before_job)s order by s.job_id desc limit %(look)s)
)
select w.job_id, null::timestamptz as at,
       %(job_type)s::text is null or %(job_type)s = (
           select r.job_type from duly.job_records r where r.org_id = %(org_id)s and r.job_id = w.job_id) as fits
from (select job_id from waiting order by job_id desc limit %(look)s) w
order by w.job_id desc
