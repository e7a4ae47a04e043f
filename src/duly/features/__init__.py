"""Features of the platform, one folder each: service, store, HTTP routes, CLI commands and console pages."""
