"""The context that a handler receives: chunks, progress, results, transaction, log."""
