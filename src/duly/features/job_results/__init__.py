"""Results under their permalinks, and files of jobs."""
