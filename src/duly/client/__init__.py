"""What an application says: its job types, and the jobs it wants done.

`app.py` is the front door (`@app.job`, enqueue, handles), `job.py` a job type, `handle.py` one job
that was asked for, `context.py` on whose behalf, `codec.py` how arguments become payloads, `borrowed.py`
the caller's own transaction. May import the model, the store and the blobs.
"""
