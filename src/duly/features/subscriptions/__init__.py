"""Subscriptions: notifications when jobs end."""
