-- name: delete
-- Purpose: a connector is forgotten, with where it was and what it took; the documents stay.
delete from documents.connectors where org_id = %(org_id)s and connector_id = %(connector_id)s

-- name: insert
-- Purpose: a new connector.
insert into documents.connectors as c (org_id, provider, name, secret_ref, account, drive, node_id, created_by)
values (%(org_id)s, %(provider)s, %(name)s, %(secret_ref)s, %(account)s, %(drive)s, %(node_id)s, %(created_by)s)
returning to_jsonb(c) - 'org_id'

-- name: is_shared
-- Purpose: whether a document stands for another remote file as well: the two had the same content.
-- Index: connector_files (org_id, document_id).
select exists (
    select from documents.connector_files f
    where f.org_id = %(org_id)s and f.document_id = %(document_id)s
      and (f.connector_id, f.remote_id) <> (%(connector_id)s, %(remote_id)s))

-- name: keep_cursor
-- Purpose: a remote folder was read so far, unless somebody else has moved on from where we began.
insert into documents.connector_cursors as c (org_id, connector_id, remote_path, cursor)
values (%(org_id)s, %(connector_id)s, %(remote_path)s, %(cursor)s)
on conflict (org_id, connector_id, remote_path) do update set cursor = excluded.cursor, updated_at = duly.now()
where c.cursor is not distinct from %(before)s::text

-- name: list
-- Purpose: the connectors of an org that bring documents into no closed folder, by their names.
select to_jsonb(c) - 'org_id' from documents.connectors c
where c.org_id = %(org_id)s and (c.node_id is null or c.node_id <> all(%(hidden_folders)s))
order by c.name

-- name: lock
-- Purpose: one at a time gets a connector a new token.
-- Locks: its row, in a way that lets others note files of it meanwhile.
select c.connector_id from documents.connectors c
where c.org_id = %(org_id)s and c.connector_id = %(connector_id)s
for no key update

-- name: lock_file
-- Purpose: one at a time takes a remote file.
-- Locks: an advisory one, until the end of the transaction; taken before that of its content, and any row.
select pg_advisory_xact_lock(hashtextextended(
    'import:' || %(org_id)s::text || ':' || %(connector_id)s::text || ':' || %(remote_id)s, 0))

-- name: note_import
-- Purpose: an import through this connector has come to its end.
update documents.connectors set last_import_at = duly.now()
where org_id = %(org_id)s and connector_id = %(connector_id)s

-- name: note_removed
-- Purpose: remote files that are gone, by their ids, or by their paths with all that was below.
update documents.connector_files f set removed_at = duly.now()
where f.org_id = %(org_id)s and f.connector_id = %(connector_id)s and f.removed_at is null
  and (f.remote_id = any(%(remote_ids)s)
    or exists (select from unnest(%(paths)s::text[]) p
               where f.remote_path = p or starts_with(f.remote_path, p || '/')))
returning f.remote_id

-- name: read
-- Purpose: a connector, if it brings documents into no closed folder.
select to_jsonb(c) - 'org_id' from documents.connectors c
where c.org_id = %(org_id)s and c.connector_id = %(connector_id)s
  and (c.node_id is null or c.node_id <> all(%(hidden_folders)s))

-- name: read_cursor
-- Purpose: how far a remote folder was read.
select c.cursor from documents.connector_cursors c
where c.org_id = %(org_id)s and c.connector_id = %(connector_id)s and c.remote_path = %(remote_path)s

-- name: read_files
-- Purpose: what is known of these remote files. Index: the primary key.
select f.remote_id, f.revision, f.document_id, f.version, f.job_id, f.removed_at is not null
from documents.connector_files f
where f.org_id = %(org_id)s and f.connector_id = %(connector_id)s and f.remote_id = any(%(remote_ids)s)

-- name: set_disabled
-- Purpose: a connector may be used no more, or again.
update documents.connectors c set disabled_at = case when %(disabled)s then coalesce(disabled_at, duly.now()) end
where c.org_id = %(org_id)s and c.connector_id = %(connector_id)s
returning to_jsonb(c) - 'org_id'
