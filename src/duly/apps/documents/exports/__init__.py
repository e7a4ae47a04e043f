"""Exports of documents and search results as CSV, JSON Lines or PDF, by a job."""
