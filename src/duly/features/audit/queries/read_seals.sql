-- Purpose: the next seals of an org. Index: the primary key.
select s.* from duly.audit_seals s
where s.org_id = %(org_id)s and s.seal_seq > %(after)s
order by s.seal_seq
limit %(limit)s
