-- Folders that are closed to somebody tell them nothing, not even that a name is taken: names are compared among the
-- folders that whoever asks may see, by whoever holds the lock of the tree.
alter table documents.nodes drop constraint nodes_org_id_parent_id_name_key;
create index on documents.nodes (org_id, parent_id, name);
