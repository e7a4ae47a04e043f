"""Quality and speed of document search."""
