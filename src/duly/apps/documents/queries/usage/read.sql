-- Purpose: what an org keeps, with the other files that are about to come. Index: the primary keys.
select coalesce(max(u.documents), 0), coalesce(max(u.bytes), 0) + coalesce((
    select sum(p.size)::bigint from documents.uploads p
    where p.org_id = %(org_id)s and p.sha256 <> %(sha256)s), 0)
from documents.usage u where u.org_id = %(org_id)s
