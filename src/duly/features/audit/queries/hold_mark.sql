-- Purpose: where the sealing goes on; no row if somebody else is at it. Locks: the mark, until the end of the round.
select m.commit_xid, m.occurred_at, m.entry_id, duly.now() as now,
       m.commit_xid > pg_snapshot_xmax(pg_current_snapshot()) as ahead,
       -- Should the holder hang, nobody else could go on.
       set_config('idle_in_transaction_session_timeout', '30s', true)
from duly.audit_mark m
for update skip locked
