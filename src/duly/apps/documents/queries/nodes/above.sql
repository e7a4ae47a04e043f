-- Purpose: a folder and those that it lies in, the nearest first.
with recursive up as (
    select n.node_id, n.parent_id, 1 as step from documents.nodes n
    where n.org_id = %(org_id)s and n.node_id = %(node_id)s
    union all
    select n.node_id, n.parent_id, u.step + 1
    from up u join documents.nodes n on n.org_id = %(org_id)s and n.node_id = u.parent_id
)
select node_id from up order by step
