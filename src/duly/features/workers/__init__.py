"""Workers as operators see them."""
