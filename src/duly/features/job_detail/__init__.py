"""One job in detail: timeline, explanation, related jobs."""
