"""Quality, speed and safety of document extraction."""
