"""What a claim and a finish cost as the backlog, the orgs and the history grow."""
