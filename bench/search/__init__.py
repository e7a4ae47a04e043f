"""How well and how fast documents are found."""
