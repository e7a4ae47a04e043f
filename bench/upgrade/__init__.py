"""What an upgrade takes, and how long clients wait meanwhile."""
