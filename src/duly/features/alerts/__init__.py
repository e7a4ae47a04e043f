"""Alerts: conditions that need attention, raised once and resolved once."""
