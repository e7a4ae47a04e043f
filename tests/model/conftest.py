"""A loaded machine is no reason to fail: examples have no deadline."""

from hypothesis import settings

settings.register_profile("model", deadline=None)
settings.load_profile("model")
