"""Customer pages of documents."""
