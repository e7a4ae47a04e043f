"""Reconciliation of stale jobs on request."""
