"""What one look at the database asks. Whoever asks reads every org: an operator, or a superuser."""

from __future__ import annotations

CALM = "set transaction isolation level repeatable read, read only; set local timezone = 'UTC'"
"""First in the transaction of a look: one snapshot, and times that read the same everywhere."""

_JOBS = """
select r.org_id, r.job_id, coalesce(s.status, 'queued'), coalesce(s.attempt, 0), coalesce(s.event_seq, 1),
       coalesce(s.progress_percent, 0),
       (select count(*) from duly.event_log e where e.org_id = r.org_id and e.job_id = r.job_id),
       case when s.finished_at is not null then md5(r::text || s::text) else '' end
from duly.job_records r left join duly.job_states s using (org_id, job_id)
"""
# Active jobs always; of the ended ones only a part in each turn, so that a look stays cheap.
JOBS = f"{_JOBS} where s.finished_at is null or get_byte(uuid_send(r.job_id), 15) %% %(parts)s = %(turn)s"
SOME_JOBS = f"""{_JOBS}
where (r.org_id, r.job_id) in (select * from unnest(%(orgs)s::uuid[], %(jobs)s::uuid[]))"""  # noqa: S608

# A lost worker's lease lives on as long as jobs are held in its name.
LEASES = """
select w.worker_id, extract(epoch from duly.now())::float8,
       extract(epoch from duly.now() - w.heartbeat_at - w.lease)::float8, w.lost_at is not null,
       exists (select from duly.claims c where c.worker_id = w.worker_id)
from duly.workers w where w.stopped_at is null
"""

_ENTRY = """md5(concat_ws('|', org_id, entry_id, occurred_at, actor_type, actor_id, action, target_type,
    target_id, coalesce(reason, '-'), coalesce(request_id, '-'), coalesce(correlation_id, '-'), detail))"""
AUDIT = f"select entry_id::text, {_ENTRY} from duly.audit_entries"  # noqa: S608
ENTRIES = f"select *, {_ENTRY} as digest from duly.audit_entries"  # noqa: S608
