-- Purpose: group the open dead letters of the session's org by kind of failure, latest first: their number, up to
-- `max_count` + 1, the first and the last time, and the latest letter.
-- Index: a loose scan over dead_letters_open, one step per kind, at most `max_groups`; then the same per returned kind.
with recursive kinds as (
    (select d.fingerprint, d.dead_at, 1 as n from duly.dead_letters d
     where d.org_id = %(org_id)s and d.resolution is null order by d.fingerprint, d.dead_at desc limit 1)
    union all
    select next.fingerprint, next.dead_at, k.n + 1
    from kinds k
    cross join lateral (
        select d.fingerprint, d.dead_at from duly.dead_letters d
        where d.org_id = %(org_id)s and d.resolution is null and d.fingerprint > k.fingerprint
        order by d.fingerprint, d.dead_at desc limit 1) next
    where k.n < %(max_groups)s
), latest as materialized (
    select k.fingerprint, k.dead_at from kinds k order by k.dead_at desc, k.fingerprint limit %(limit)s
)
select s.fingerprint, l.org_id, l.job_id, l.job_type, l.error_code, l.error_class, l.error_message,
       s.dead_at as last_dead_at, f.dead_at as first_dead_at, c.n as letters, 1 as orgs
from latest s
cross join lateral (
    select d.* from duly.dead_letters d
    where d.org_id = %(org_id)s and d.resolution is null and d.fingerprint = s.fingerprint
    order by d.dead_at desc limit 1) l
cross join lateral (
    select d.dead_at from duly.dead_letters d
    where d.org_id = %(org_id)s and d.resolution is null and d.fingerprint = s.fingerprint
    order by d.dead_at limit 1) f
cross join lateral (
    select count(*) as n from (
        select from duly.dead_letters d
        where d.org_id = %(org_id)s and d.resolution is null and d.fingerprint = s.fingerprint
        limit %(max_count)s + 1) x) c
order by s.dead_at desc, s.fingerprint
