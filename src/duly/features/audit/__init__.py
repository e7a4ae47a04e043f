"""The audit trail: entries, hash chain, seals and verification."""
