"""HTTP routes of documents."""
