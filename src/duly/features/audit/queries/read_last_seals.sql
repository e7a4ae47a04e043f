-- Purpose: the last seal of each of these orgs. Index: the primary key, backwards.
select s.*
from unnest(%(org_ids)s::uuid[]) o(org_id)
cross join lateral (
    select l.* from duly.audit_seals l where l.org_id = o.org_id order by l.seal_seq desc limit 1
) s
