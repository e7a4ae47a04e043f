-- Purpose: another name, folder or metadata; null leaves it as it is.
update documents.documents set name = coalesce(%(name)s, name),
    node_id = case when %(moves)s then %(node_id)s else node_id end,
    metadata = coalesce(%(metadata)s, metadata), updated_at = duly.now()
where org_id = %(org_id)s and document_id = %(document_id)s
