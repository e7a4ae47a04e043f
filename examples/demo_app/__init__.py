"""The system of `./dev demo`: the customers of a small bookkeeping product and their jobs.

It has real workers and real jobs, and uses the public API only: `load` submits jobs over HTTP, the
processes of `worker_pool` run them, and `promise_checker` checks the promises.
"""
