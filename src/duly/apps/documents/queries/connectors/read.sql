-- Purpose: a connector, if it brings documents into no closed folder.
select to_jsonb(c) - 'org_id' from documents.connectors c
where c.org_id = %(org_id)s and c.connector_id = %(connector_id)s
  and (c.node_id is null or c.node_id <> all(%(barred)s))
