"""Figures of an org and of the installation."""
