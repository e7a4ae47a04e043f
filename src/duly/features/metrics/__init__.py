"""Metrics that are read from the database."""
