"""The one error this package raises."""


class DevdbError(Exception):
    """The embedded PostgreSQL cannot be had; the message names the fix."""
