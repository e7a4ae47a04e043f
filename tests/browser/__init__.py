"""What people see, in a real browser."""
