-- Purpose: remote files that are gone, by their ids, or by their paths with all that was below.
update documents.connector_files f set removed_at = duly.now()
where f.org_id = %(org_id)s and f.connector_id = %(connector_id)s and f.removed_at is null
  and (f.remote_id = any(%(remote_ids)s)
    or exists (select from unnest(%(paths)s::text[]) p
               where f.remote_path = p or starts_with(f.remote_path, p || '/')))
returning f.remote_id
