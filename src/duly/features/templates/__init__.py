"""Message templates: built-in and per org."""
