-- Purpose: what is in the box, by kind: how many, since when, and what the latest one says.
-- Index: dead_letters_open, also for the latest of each kind.
select g.fingerprint, l.job_type, l.error_code, l.error_class, l.error_message, g.letters, g.first_dead_at, g.last_dead_at
from (
    select fingerprint, count(*) as letters, min(dead_at) as first_dead_at, max(dead_at) as last_dead_at
    from duly.dead_letters
    where org_id = %(org_id)s and resolution is null
    group by fingerprint
    order by max(dead_at) desc, fingerprint
    limit %(limit)s
) g
cross join lateral (
    select * from duly.dead_letters l
    where l.org_id = %(org_id)s and l.fingerprint = g.fingerprint and l.resolution is null
    order by l.dead_at desc limit 1
) l
order by g.last_dead_at desc, g.fingerprint
