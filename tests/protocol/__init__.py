"""Leases, fences and retries: a model explored to its end, and the real SQL held against it."""
