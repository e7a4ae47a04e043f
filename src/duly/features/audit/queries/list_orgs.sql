-- Purpose: every org that is known, or has entries or seals. Reads all of them, as a verification does anyway.
select o.org_id from duly.organizations o
union
select s.org_id from duly.audit_seals s
union
select e.org_id from duly.audit_entries e
order by 1
