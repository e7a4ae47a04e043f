-- Claims of single jobs take the plain path, too. A look-up reads every claim whose range of ids contains the job; those of a
-- single job, of which there may be many, are found by their id.

lock table duly.claims in access exclusive mode;

drop index duly.claims_plain;
create index claims_plain on duly.claims (high) where plain and cardinality(job_ids) > 1;
create index claims_single on duly.claims (high) where plain and cardinality(job_ids) = 1;

grant create on schema duly to duly_engine;
set local role duly_engine;
create or replace function duly.find_plain_claim(p_org uuid, p_job uuid)
returns table (claim_id uuid, worker_id uuid, claimed_at timestamptz, commit_xid xid8)
    language sql stable strict security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off
begin atomic
    select c.claim_id, c.worker_id, c.claimed_at, c.commit_xid
    from (
        select s.* from duly.claims s where s.plain and cardinality(s.job_ids) = 1 and s.high = p_job
        union all
        select m.* from duly.claims m where m.plain and cardinality(m.job_ids) > 1 and p_job between m.low and m.high
    ) c
    where c.org_ids[array_position(c.job_ids, p_job)] = p_org and p_job <> all (c.left_jobs)
      and (current_setting('role') <> 'duly_tenant' or p_org = duly.current_org())
    limit 1;
end;
set local role duly_owner;
revoke create on schema duly from duly_engine;
