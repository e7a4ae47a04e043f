-- Purpose: take blobs off the list that are removed from the store. Index: the primary key.
delete from duly.released_blobs where blob_ref = any (%(blob_refs)s)
