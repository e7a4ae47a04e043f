"""Chaos tests: a real cluster under seeded faults, recorded as a history and checked."""
