-- Purpose: the kinds of open dead letters of all orgs, the latest first: how many, counted no further than `most` + 1, since
-- when, how many orgs the latest `look` are of, and what the latest one says.
-- Index: a loose scan over dead_letters_by_kind, one step for each kind, at most `kinds`; then the same for each shown.
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
    where k.n < %(kinds)s
), shown as materialized (
    select k.fingerprint, k.dead_at from kinds k order by k.dead_at desc, k.fingerprint limit %(limit)s
)
select s.fingerprint, l.org_id, l.job_id, l.job_type, l.error_code, l.error_class, l.error_message,
       s.dead_at as last_dead_at, f.dead_at as first_dead_at, c.n as letters, o.n as orgs,
       (select w.name from duly.organizations w where w.org_id = l.org_id) as org_name
from shown s
cross join lateral (
    select d.* from duly.dead_letters d
    where d.resolution is null and d.fingerprint = s.fingerprint order by d.dead_at desc limit 1) l
cross join lateral (
    select d.dead_at from duly.dead_letters d
    where d.resolution is null and d.fingerprint = s.fingerprint order by d.dead_at limit 1) f
cross join lateral (
    select count(*) as n from (
        select from duly.dead_letters d
        where d.resolution is null and d.fingerprint = s.fingerprint limit %(most)s + 1) x) c
cross join lateral (
    select count(distinct x.org_id) as n from (
        select d.org_id from duly.dead_letters d
        where d.resolution is null and d.fingerprint = s.fingerprint order by d.dead_at desc limit %(look)s) x) o
order by s.dead_at desc, s.fingerprint
