-- What jobs brought can be erased before its time, with what they were about. Nobody deletes snapshots otherwise: the
-- engine writes them once, and old ones go with their partition.
create function duly.erase_snapshots(p_org uuid, p_jobs uuid[]) returns table (payload_ref text)
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_partition regclass;
begin
    -- The owner sees no row of the table itself: row level security is forced there.
    for v_partition in select t.relid from pg_partition_tree('duly.result_snapshots') t where t.isleaf loop
        return query execute format(
            'delete from %s x where x.org_id = $1 and x.job_id = any($2) returning x.payload_ref', v_partition)
            using p_org, p_jobs;
    end loop;
end $$;
grant execute on function duly.erase_snapshots(uuid, uuid[]) to duly_engine;
