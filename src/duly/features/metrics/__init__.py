"""Metrics of the database, for Prometheus."""
