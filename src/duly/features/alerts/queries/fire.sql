-- Purpose: what is wrong now becomes an alert, or is seen again in the one that is open; whether it is new.
-- Index: alerts_open, which is the fence: one alert of a kind and a target at a time.
insert into duly.alerts as a (org_id, alert_id, kind, target, severity, summary, detail, measured, threshold)
select f.org_id, duly.uuid7(), f.kind, f.target, f.severity, f.summary, f.detail, f.measured, f.threshold
from jsonb_to_recordset(%(firing)s) f(
    org_id uuid, kind text, target text, severity text, summary text, detail jsonb, measured float8, threshold float8)
on conflict (org_id, kind, target) where resolved_at is null do update set
    severity = excluded.severity, summary = excluded.summary, detail = excluded.detail,
    measured = excluded.measured, threshold = excluded.threshold, seen_at = duly.now()
returning a.*, a.xmax = 0 as is_new
