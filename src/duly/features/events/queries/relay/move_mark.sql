-- Purpose: say that everything up to here was relayed. Locks: the mark, which the round holds already.
update duly.relay_mark
set commit_xid = %(xid)s::xid8, job_id = %(job_id)s, event_seq = %(event_seq)s, moved_at = duly.now()
