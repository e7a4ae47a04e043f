"""Cost of a claim and a completion as the backlog, the orgs and the history grow."""
