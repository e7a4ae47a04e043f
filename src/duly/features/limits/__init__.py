"""Limits per org and job type: concurrency, rate, quota, pause."""
