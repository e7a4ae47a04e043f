"""What runs in the process that reads a file. It imports nothing of Duly outside of this folder."""
