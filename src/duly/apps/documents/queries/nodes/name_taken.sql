-- Purpose: whether another folder that is open has this name in the same place; null means the name that it has, or, if
-- it does not move, the place where it is. Index: nodes (org_id, parent_id, name).
select exists (
    select from documents.nodes n
    left join documents.nodes me on me.org_id = n.org_id and me.node_id = %(node_id)s
    where n.org_id = %(org_id)s and n.node_id is distinct from %(node_id)s and n.node_id <> all(%(barred)s)
      and n.name = coalesce(%(name)s, me.name)
      and n.parent_id is not distinct from case when %(moves)s then %(parent_id)s::uuid else me.parent_id end)
