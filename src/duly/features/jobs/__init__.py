"""Jobs: list, filter, status and cancel."""
