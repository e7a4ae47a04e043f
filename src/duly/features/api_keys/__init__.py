"""API keys: created, listed, rotated and revoked."""
