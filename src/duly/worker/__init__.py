"""The worker: claims jobs, runs their handlers, and writes down how each attempt ended.

`worker.py` is the whole; `claimer` takes jobs, `executor` runs them, `finisher` settles them, `heartbeat`
keeps the lease. `context` is what a handler is given. It may touch the client, the store, the blobs and
the model.
"""
