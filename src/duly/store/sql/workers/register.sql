-- Purpose: a worker introduces itself; its id is fresh at every boot. Index: the primary key.
-- A second time changes nothing: the answer to the first may have been lost.
insert into duly.workers (worker_id, name, host, pid, version, queues, slots, lease)
values (%(worker_id)s, %(name)s, %(host)s, %(pid)s, %(version)s, %(queues)s, %(slots)s, %(lease)s)
on conflict (worker_id) do nothing
