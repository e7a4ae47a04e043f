"""Ways to look at a text, one a file: pure functions from text to a frozen result."""
