-- Purpose: how many levels a folder has with those below it, whom it follows now, and whom it would follow elsewhere.
with recursive down as (
    select n.node_id, 1 as depth from documents.nodes n where n.org_id = %(org_id)s and n.node_id = %(node_id)s
    union all
    select n.node_id, d.depth + 1
    from down d join documents.nodes n on n.org_id = %(org_id)s and n.parent_id = d.node_id
), guards as materialized (
    select g.node_id, g.guard from documents.guards() g
)
select (select max(d.depth) from down d),
       (select g.guard from guards g where g.node_id = %(node_id)s),
       (select g.guard from guards g where g.node_id = %(parent_id)s)
