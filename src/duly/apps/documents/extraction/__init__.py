"""Extraction: read the text of documents in a job, and publish it for search and classification."""
