"""Status polls compared with a bare route."""
