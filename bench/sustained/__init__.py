"""Minutes of enqueueing and draining together: whether tables bloat and claims slow down."""
