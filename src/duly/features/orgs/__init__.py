"""Orgs, their projects, and their fair shares of the workers."""
