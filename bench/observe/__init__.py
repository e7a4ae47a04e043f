"""Cost of logs, metrics and events in a drain."""
