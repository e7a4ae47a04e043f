"""How well, how fast and how safely files are read."""
