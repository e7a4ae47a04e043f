"""Commands of `duly docs`."""
