"""What the measurements share: a server of their own, numbers, and charts without a library."""
