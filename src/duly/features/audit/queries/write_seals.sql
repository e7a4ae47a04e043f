-- Purpose: write the next seals of some orgs. Fence: the primary key; a chain has one seal of a number.
insert into duly.audit_seals (
    org_id, seal_seq, version, last_commit_xid, last_occurred_at, last_entry_id, entry_count, entry_ids, digests,
    previous_hash, hash, sealed_at)
select s.org_id, s.seal_seq, s.version, s.last_commit_xid, s.last_occurred_at, s.last_entry_id, s.entry_count,
       s.entry_ids, s.digests, s.previous_hash, s.hash, s.sealed_at
from jsonb_to_recordset(%(seals)s) s(
    org_id uuid, seal_seq bigint, version smallint, last_commit_xid xid8, last_occurred_at timestamptz,
    last_entry_id uuid, entry_count bigint, entry_ids uuid[], digests bytea[], previous_hash bytea, hash bytea,
    sealed_at timestamptz)
