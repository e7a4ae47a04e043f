-- Purpose: folders of that name in another, or in the root: one, unless some are closed to others. Index: nodes (org_id, parent_id, name).
select n.node_id from documents.nodes n
where n.org_id = %(org_id)s and n.name = %(name)s
  and (n.parent_id = %(parent_id)s or (%(parent_id)s::uuid is null and n.parent_id is null))
order by n.node_id
