"""The overview and the dashboard of an org and of the installation."""
