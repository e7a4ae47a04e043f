-- Purpose: a connector may be used no more, or again.
update documents.connectors c set disabled_at = case when %(disabled)s then coalesce(disabled_at, duly.now()) end
where c.org_id = %(org_id)s and c.connector_id = %(connector_id)s
returning to_jsonb(c) - 'org_id'
