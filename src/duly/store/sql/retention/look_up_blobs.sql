-- Purpose: released blobs that no row of their org names any more. Those that are named again are taken off the list.
-- Locks: none but the rows taken off, unless they were released once more meanwhile; two at once would only look
-- twice. Index: released_blobs_oldest, then those by blob.
with oldest as materialized (
    select b.blob_ref, b.released_at, split_part(substr(b.blob_ref, 6), '/', 1)::uuid as org_id
    from duly.released_blobs b order by b.released_at limit %(limit)s
), looked_up as materialized (
    select o.blob_ref, o.released_at,
           exists (select from duly.named_blobs n where n.org_id = o.org_id and n.blob_ref = o.blob_ref) as named
    from oldest o
), taken_off as (
    delete from duly.released_blobs b using looked_up l
    where b.blob_ref = l.blob_ref and b.released_at = l.released_at and l.named
)
select l.blob_ref, l.named from looked_up l
