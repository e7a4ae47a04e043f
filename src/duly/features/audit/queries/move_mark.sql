-- Purpose: say that everything up to here has its seal. Locks: the mark, which the round holds already.
update duly.audit_mark
set commit_xid = %(commit_xid)s::xid8, occurred_at = %(occurred_at)s, entry_id = %(entry_id)s
