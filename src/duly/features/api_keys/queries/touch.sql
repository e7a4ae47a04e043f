-- Purpose: note that a key was used, unless somebody was faster or changes the key just now.
-- Locks: its row, skipped if held. Index: the primary key.
with free as materialized (
    select org_id, key_id from duly.api_keys
    where org_id = %(org_id)s and key_id = %(key_id)s and last_used_at is not distinct from %(seen)s
    for no key update skip locked
)
update duly.api_keys k set last_used_at = duly.now()
from free where k.org_id = free.org_id and k.key_id = free.key_id
