-- Purpose: other limits, or a pause, for a gate. Index: the primary key. Locks: the gate, which the caller holds.
-- A new rate begins with a full bucket, a changed one with what the old one has left.
update duly.gates g set
    max_running = %(max_running)s, starts_per_second = %(starts_per_second)s::float8, burst = %(burst)s::integer,
    max_waiting = %(max_waiting)s,
    paused_at = case when %(paused_by)s::text is not null then coalesce(g.paused_at, duly.now()) end,
    resumed_at = case when g.paused_at is not null and %(paused_by)s::text is null then duly.now() else g.resumed_at end,
    paused_by = %(paused_by)s, pause_reason = %(pause_reason)s,
    tokens = case when %(starts_per_second)s::float8 is null then 0
        else coalesce(least(%(burst)s::integer, duly.gate_tokens(g)), 0) end,
    refilled_at = case when %(starts_per_second)s::float8 is null or g.starts_per_second is null
        then '-infinity' else duly.now() end,
    updated_at = duly.now()
where g.org_id = %(org_id)s and g.job_type = %(job_type)s
