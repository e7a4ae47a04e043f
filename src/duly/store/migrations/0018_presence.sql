-- Presence: a worker's own connection holds an advisory lock for as long as its process lives, however busy it is.

-- Heartbeats wait for this.
-- How long the worker may be silent once that connection is gone; null if it has none of its own.
alter table duly.workers add column silence interval check (silence > interval '0');
-- Since when the connection was found gone, of a worker that was declared lost for that.
alter table duly.workers add column absent_since timestamptz;
