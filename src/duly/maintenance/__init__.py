"""Maintenance: lost leases, stale jobs, owed failure callbacks, retention, vacuum.

Each chore is an object with `once()`, which does what is due and returns when to run it again. Chores run
beside every worker and must be safe on many at once.
"""
