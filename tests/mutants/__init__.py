"""Seeded bugs. With each of them the checker must turn red: a checker that cannot is worth nothing."""
