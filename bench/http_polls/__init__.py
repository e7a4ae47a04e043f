"""Status polls beside a bare route."""
