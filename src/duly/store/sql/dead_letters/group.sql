-- Purpose: what is in the box, by kind: how many, since when, and what the latest one says. Each kind is counted to `most`.
-- Index: dead_letters_open, in steps from kind to kind; so many kinds at most.
with recursive kind(fingerprint) as (
    (select d.fingerprint from duly.dead_letters d
     where d.org_id = %(org_id)s and d.resolution is null order by d.fingerprint limit 1)
    union all
    select (select d.fingerprint from duly.dead_letters d
            where d.org_id = %(org_id)s and d.resolution is null and d.fingerprint > k.fingerprint
            order by d.fingerprint limit 1)
    from kind k where k.fingerprint is not null
)
select l.org_id, k.fingerprint, l.job_id, l.job_type, l.error_code, l.error_class, l.error_message, n.letters,
       f.dead_at as first_dead_at, l.dead_at as last_dead_at
from (select fingerprint from kind where fingerprint is not null limit %(limit)s) k
cross join lateral (
    select * from duly.dead_letters l
    where l.org_id = %(org_id)s and l.fingerprint = k.fingerprint and l.resolution is null
    order by l.dead_at desc limit 1
) l
cross join lateral (
    select f.dead_at from duly.dead_letters f
    where f.org_id = %(org_id)s and f.fingerprint = k.fingerprint and f.resolution is null
    order by f.dead_at limit 1
) f
cross join lateral (
    select count(*) as letters from (
        select from duly.dead_letters c
        where c.org_id = %(org_id)s and c.fingerprint = k.fingerprint and c.resolution is null limit %(most)s) c
) n
order by l.dead_at desc, k.fingerprint
