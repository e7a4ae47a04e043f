-- Purpose: another name or another place for a folder.
update documents.nodes set name = coalesce(%(name)s, name),
    parent_id = case when %(moves)s then %(parent_id)s else parent_id end
where org_id = %(org_id)s and node_id = %(node_id)s
