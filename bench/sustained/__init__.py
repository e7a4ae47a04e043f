"""Enqueueing and draining together for minutes: whether anything swells, whether claims slow down."""
