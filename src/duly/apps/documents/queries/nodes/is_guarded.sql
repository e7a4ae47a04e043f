-- Purpose: whether a folder of the transaction's org is for some only; no row if it is for all.
select 1 from documents.guards() g where g.node_id = %(node_id)s and g.guard is not null
