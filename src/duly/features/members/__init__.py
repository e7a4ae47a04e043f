"""Members of orgs and their roles."""
