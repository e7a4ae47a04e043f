-- Purpose: a new connector.
insert into documents.connectors as c (org_id, provider, name, secret_ref, account, drive, node_id, created_by)
values (%(org_id)s, %(provider)s, %(name)s, %(secret_ref)s, %(account)s, %(drive)s, %(node_id)s, %(created_by)s)
returning to_jsonb(c) - 'org_id'
