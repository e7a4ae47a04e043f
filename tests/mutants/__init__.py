"""Seeded bugs: the checker must report each of them."""
