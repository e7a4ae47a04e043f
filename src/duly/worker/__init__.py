"""The worker claims jobs, executes their handlers and settles how each attempt ended.

The pipeline is `claim` -> `execute` -> `settle`; `worker` runs it, `heartbeat` renews the lease. `handler`
calls the function of the user with a `context`: on the loop, on a thread or in an isolated process.
"""
