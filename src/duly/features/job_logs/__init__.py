"""Log lines of a job, by attempt."""
