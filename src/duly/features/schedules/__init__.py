"""Schedules: cron expressions, ticks and the scheduler."""
