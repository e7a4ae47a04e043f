-- Folders that are closed to somebody tell them nothing, not even that a name is taken: names are compared among the
-- folders that whoever asks may see, by whoever holds the lock of the tree.
alter table documents.nodes drop constraint nodes_org_id_parent_id_name_key;
create index on documents.nodes (org_id, parent_id, name);

-- How much an org keeps, counted as it comes and goes. A sum over all versions would be too slow for every upload.
create table documents.usage (
    org_id uuid primary key references duly.organizations,
    documents bigint not null check (documents >= 0),
    bytes bigint not null check (bytes >= 0)
);
select documents.isolate('documents.usage');
-- As the engine, which sees the rows of all orgs.
set local role duly_engine;
insert into documents.usage (org_id, documents, bytes)
select v.org_id, count(distinct v.document_id), sum(v.size) from documents.document_versions v group by v.org_id;
set local role duly_owner;
