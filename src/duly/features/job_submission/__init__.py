"""Submission of jobs over HTTP and the CLI."""
