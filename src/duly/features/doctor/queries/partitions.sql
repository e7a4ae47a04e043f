-- Purpose: the partitions that there should be now, as `duly.ensure_partitions` makes them, and whether they are.
-- The last one of each table is not urgent: it is made in the hour after its predecessor has begun. The default
-- ones were made by a migration, and catch what has no other place.
select t.parent, f.at at time zone 'UTC' as starts_at, n.n < t.ahead as urgent, true as makeable,
       format('%%s_%%s', t.parent, to_char(f.at, 'YYYYMMDD')) as partition,
       exists (
           select from duly.partitions p
           where p.parent = t.parent and f.at at time zone 'UTC' >= p.starts_at and f.at at time zone 'UTC' < p.ends_at
       ) as there
from duly.partitioned_tables t
cross join generate_series(-1, t.ahead) n
cross join lateral (
    select date_trunc(t.step, duly.now() at time zone 'UTC') + ('1 ' || t.step)::interval * n.n as at) f
union all
select t.parent, null, true, false, format('%%s_default', t.parent),
       exists (select from duly.partitions p where p.parent = t.parent and p.partition = format('%%s_default', t.parent))
from duly.partitioned_tables t
order by 2 nulls last, 1
