"""What logs, metrics and the record of events cost a drain."""
