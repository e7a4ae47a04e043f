"""Queues and workers: weights, pauses, statistics, drain."""
