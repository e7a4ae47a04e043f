-- Purpose: how many folders an org has.
select count(*) from documents.nodes where org_id = %(org_id)s
