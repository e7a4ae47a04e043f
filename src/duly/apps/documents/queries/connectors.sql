-- name: insert
-- Purpose: insert a connector.
insert into documents.connectors as c (org_id, provider, name, secret_ref, account, drive, node_id, created_by)
values (%(org_id)s, %(provider)s, %(name)s, %(secret_ref)s, %(account)s, %(drive)s, %(node_id)s, %(created_by)s)
returning to_jsonb(c) - 'org_id'

-- name: read
-- Purpose: return a connector unless its folder is hidden.
select to_jsonb(c) - 'org_id' from documents.connectors c
where c.org_id = %(org_id)s and c.connector_id = %(connector_id)s
  and (c.node_id is null or c.node_id <> all(%(hidden_folders)s))

-- name: list
-- Purpose: return the connectors of an org whose folders are not hidden, by name.
select to_jsonb(c) - 'org_id' from documents.connectors c
where c.org_id = %(org_id)s and (c.node_id is null or c.node_id <> all(%(hidden_folders)s))
order by c.name

-- name: set_disabled
-- Purpose: disable a connector, or enable it again.
update documents.connectors c set disabled_at = case when %(disabled)s then coalesce(disabled_at, duly.now()) end
where c.org_id = %(org_id)s and c.connector_id = %(connector_id)s
returning to_jsonb(c) - 'org_id'

-- name: delete
-- Purpose: delete a connector with its cursors and file records; the documents stay.
delete from documents.connectors where org_id = %(org_id)s and connector_id = %(connector_id)s

-- name: lock
-- Purpose: serialize the refresh of a connector's token.
-- Locks: its row, in a mode that lets other transactions record files of it meanwhile.
select c.connector_id from documents.connectors c
where c.org_id = %(org_id)s and c.connector_id = %(connector_id)s
for no key update

-- name: record_import
-- Purpose: record that an import through this connector has ended.
update documents.connectors set last_import_at = duly.now()
where org_id = %(org_id)s and connector_id = %(connector_id)s

-- name: read_cursor
-- Purpose: return the cursor up to which a remote folder was imported.
select c.cursor from documents.connector_cursors c
where c.org_id = %(org_id)s and c.connector_id = %(connector_id)s and c.remote_path = %(remote_path)s

-- name: save_cursor
-- Purpose: save the cursor of a remote folder, unless another import has moved it since this one read it.
insert into documents.connector_cursors as c (org_id, connector_id, remote_path, cursor)
values (%(org_id)s, %(connector_id)s, %(remote_path)s, %(cursor)s)
on conflict (org_id, connector_id, remote_path) do update set cursor = excluded.cursor, updated_at = duly.now()
where c.cursor is not distinct from %(before)s::text

-- name: lock_file
-- Purpose: serialize the imports of a remote file.
-- Locks: an advisory lock until the transaction ends; taken before that of its content, and before any row.
select pg_advisory_xact_lock(hashtextextended(
    'import:' || %(org_id)s::text || ':' || %(connector_id)s::text || ':' || %(remote_id)s, 0))

-- name: read_files
-- Purpose: return the records of remote files. Index: the primary key.
select f.remote_id, f.revision, f.document_id, f.version, f.job_id, f.removed_at is not null
from documents.connector_files f
where f.org_id = %(org_id)s and f.connector_id = %(connector_id)s and f.remote_id = any(%(remote_ids)s)

-- name: save_file
-- Purpose: record which document and version a remote file is at this revision.
insert into documents.connector_files
    (org_id, connector_id, remote_id, revision, remote_path, checksum, document_id, version, job_id)
values (%(org_id)s, %(connector_id)s, %(remote_id)s, %(revision)s, %(remote_path)s, %(checksum)s,
    %(document_id)s, %(version)s, %(job_id)s)
on conflict (org_id, connector_id, remote_id) do update set revision = excluded.revision,
    remote_path = excluded.remote_path, checksum = excluded.checksum, document_id = excluded.document_id,
    version = excluded.version, job_id = excluded.job_id, imported_at = duly.now(), removed_at = null

-- name: is_shared
-- Purpose: return whether a document also stands for another remote file: the two had the same content.
-- Index: connector_files (org_id, document_id).
select exists (
    select from documents.connector_files f
    where f.org_id = %(org_id)s and f.document_id = %(document_id)s
      and (f.connector_id, f.remote_id) <> (%(connector_id)s, %(remote_id)s))

-- name: mark_removed
-- Purpose: mark remote files as removed, by id, or by path with everything below it.
update documents.connector_files f set removed_at = duly.now()
where f.org_id = %(org_id)s and f.connector_id = %(connector_id)s and f.removed_at is null
  and (f.remote_id = any(%(remote_ids)s)
    or exists (select from unnest(%(paths)s::text[]) p
               where f.remote_path = p or starts_with(f.remote_path, p || '/')))
returning f.remote_id
