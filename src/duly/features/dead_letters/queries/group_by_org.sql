-- Purpose: group the open dead letters of all orgs by org and kind of failure: their number, up to `max_count`, the first
-- and the last time, and the latest letter. Index: a loose scan over dead_letters_open, at most `limit` steps.
with recursive kind(org_id, fingerprint) as (
    (select d.org_id, d.fingerprint from duly.dead_letters d
     where d.resolution is null order by d.org_id, d.fingerprint limit 1)
    union all
    select n.org_id, n.fingerprint
    from kind k
    cross join lateral (
        select d.org_id, d.fingerprint from duly.dead_letters d
        where d.resolution is null and (d.org_id, d.fingerprint) > (k.org_id, k.fingerprint)
        order by d.org_id, d.fingerprint limit 1) n
)
select k.org_id, k.fingerprint, l.job_id, l.job_type, l.error_code, l.error_class, l.error_message, n.letters,
       f.dead_at as first_dead_at, l.dead_at as last_dead_at,
       (select o.name from duly.organizations o where o.org_id = k.org_id) as org_name
from (select * from kind limit %(limit)s) k
cross join lateral (
    select * from duly.dead_letters l
    where l.org_id = k.org_id and l.fingerprint = k.fingerprint and l.resolution is null
    order by l.dead_at desc limit 1
) l
cross join lateral (
    select f.dead_at from duly.dead_letters f
    where f.org_id = k.org_id and f.fingerprint = k.fingerprint and f.resolution is null
    order by f.dead_at limit 1
) f
cross join lateral (
    select count(*) as letters from (
        select from duly.dead_letters c
        where c.org_id = k.org_id and c.fingerprint = k.fingerprint and c.resolution is null limit %(max_count)s) c
) n
order by l.dead_at desc, k.org_id, k.fingerprint
