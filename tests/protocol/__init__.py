"""Leases, fencing and retries: an exhaustively explored model, and the real SQL compared with it."""
