-- Purpose: an org keeps so much more, or less; what it keeps then, with the other files that are about to come.
-- Locks: the row of the org, until the end of the transaction; taken after those of documents.
insert into documents.usage as u (org_id, documents, bytes)
values (%(org_id)s, greatest(0, %(documents)s), greatest(0, %(bytes)s))
on conflict (org_id) do update set documents = greatest(0, u.documents + %(documents)s),
    bytes = greatest(0, u.bytes + %(bytes)s)
returning u.documents, u.bytes + coalesce((
    select sum(p.size)::bigint from documents.uploads p
    where p.org_id = %(org_id)s and p.sha256 <> %(sha256)s), 0)
