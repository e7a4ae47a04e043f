"""The nemesis: a real cluster under seeded faults, recorded as a history and judged by the checker."""
