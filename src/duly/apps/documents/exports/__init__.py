"""Documents and search results given out: as tables, as lines of JSON, as paper; with checksums, by a job."""
