-- Purpose: the connectors of an org that bring documents into no closed folder, by their names.
select to_jsonb(c) - 'org_id' from documents.connectors c
where c.org_id = %(org_id)s and (c.node_id is null or c.node_id <> all(%(barred)s))
order by c.name
