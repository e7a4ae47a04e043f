-- Purpose: the folders of an org that are open to somebody, with their paths. Closed ones hide nothing that is
-- open below them: their names are left out of its path, and their ids out of where it lies.
with recursive tree as (
    select n.node_id, n.parent_id, n.name, n.created_by, n.created_at, 1 as depth,
           case when n.node_id <> all(%(hidden_folders)s) then n.name else '…' end as path
    from documents.nodes n where n.org_id = %(org_id)s and n.parent_id is null
    union all
    select n.node_id, n.parent_id, n.name, n.created_by, n.created_at, t.depth + 1,
           t.path || '/' || case when n.node_id <> all(%(hidden_folders)s) then n.name else '…' end
    from tree t join documents.nodes n on n.org_id = %(org_id)s and n.parent_id = t.node_id
)
select to_jsonb(t) - 'depth' || jsonb_build_object('parent_id',
    case when t.parent_id <> all(%(hidden_folders)s) then t.parent_id end)
from tree t
where t.node_id <> all(%(hidden_folders)s) and (%(node_id)s::uuid is null or t.node_id = %(node_id)s)
order by t.path
