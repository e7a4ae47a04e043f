"""Folders of an org, and access to them."""
