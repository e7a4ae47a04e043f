-- Purpose: group the open dead letters of all orgs by kind of failure, latest first: their number, up to `max_count` + 1,
-- the first and the last time, the number of orgs of the latest `max_letters_for_orgs`, and the latest letter.
-- Index: a loose scan over dead_letters_by_kind, one step per kind, at most `max_groups`; then the same per returned kind.
with recursive kinds as (
    (select d.fingerprint, d.dead_at, 1 as n from duly.dead_letters d
     where d.resolution is null order by d.fingerprint, d.dead_at desc limit 1)
    union all
    select next.fingerprint, next.dead_at, k.n + 1
    from kinds k
    cross join lateral (
        select d.fingerprint, d.dead_at from duly.dead_letters d
        where d.resolution is null and d.fingerprint > k.fingerprint
        order by d.fingerprint, d.dead_at desc limit 1) next
    where k.n < %(max_groups)s
), latest as materialized (
    select k.fingerprint, k.dead_at from kinds k order by k.dead_at desc, k.fingerprint limit %(limit)s
)
select s.fingerprint, l.org_id, l.job_id, l.job_type, l.error_code, l.error_class, l.error_message,
       s.dead_at as last_dead_at, f.dead_at as first_dead_at, c.n as letters, o.n as orgs,
       (select w.name from duly.organizations w where w.org_id = l.org_id) as org_name
from latest s
cross join lateral (
    select d.* from duly.dead_letters d
    where d.resolution is null and d.fingerprint = s.fingerprint order by d.dead_at desc limit 1) l
cross join lateral (
    select d.dead_at from duly.dead_letters d
    where d.resolution is null and d.fingerprint = s.fingerprint order by d.dead_at limit 1) f
cross join lateral (
    select count(*) as n from (
        select from duly.dead_letters d
        where d.resolution is null and d.fingerprint = s.fingerprint limit %(max_count)s + 1) x) c
cross join lateral (
    select count(distinct x.org_id) as n from (
        select d.org_id from duly.dead_letters d
        where d.resolution is null and d.fingerprint = s.fingerprint order by d.dead_at desc limit %(max_letters_for_orgs)s) x) o
order by s.dead_at desc, s.fingerprint
