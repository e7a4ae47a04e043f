"""Job types and jobs: declare, enqueue, handles, results, failure callbacks and stale jobs.

`application.py` holds the application object below the engine, `job.py` a job type, `enqueue.py` the way of a
call into the database, `handle.py` the handle of an enqueued job, `request_context.py` org, actor and trace,
`store.py` the storage. May import core, db, blobs and observability.
"""
