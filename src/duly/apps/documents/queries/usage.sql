-- name: add
-- Purpose: add to the documents and bytes that an org stores, or subtract; return the sums, with the sizes of open uploads
-- of other files.
-- Locks: the row of the org until the transaction ends; taken after those of documents.
insert into documents.usage as u (org_id, documents, bytes)
values (%(org_id)s, greatest(0, %(documents)s), greatest(0, %(bytes)s))
on conflict (org_id) do update set documents = greatest(0, u.documents + %(documents)s),
    bytes = greatest(0, u.bytes + %(bytes)s)
returning u.documents, u.bytes + coalesce((
    select sum(p.size)::bigint from documents.uploads p
    where p.org_id = %(org_id)s and p.sha256 <> %(sha256)s), 0)

-- name: read
-- Purpose: return the documents and bytes that an org stores, with the sizes of open uploads of other files.
-- Index: the primary keys.
select coalesce(max(u.documents), 0), coalesce(max(u.bytes), 0) + coalesce((
    select sum(p.size)::bigint from documents.uploads p
    where p.org_id = %(org_id)s and p.sha256 <> %(sha256)s), 0)
from documents.usage u where u.org_id = %(org_id)s
