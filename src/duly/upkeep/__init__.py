"""What keeps the house in order: lost leases, schedules, retention.

Each chore is an object with `once()`, which does what is due and says when to look again. Chores run
beside every worker and must be safe on many at once. They may touch the client, the store and the model.
"""
